"""What a notebook shows."""

import html.parser
import json
import unittest

from small_models import small

import qkv


class Frame(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.page = None

    def handle_starttag(self, tag, attrs):
        if tag == "iframe":
            self.page = dict(attrs)["srcdoc"]


class Display(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.seen = qkv.Model(small(), threads=1).look('The "cat" & <b>小猫</b>')

    def test_the_report_page_is_inline(self):
        frame = Frame()
        frame.feed(self.seen._repr_html_())
        self.assertEqual(frame.page, self.seen.html(), "what the frame holds is the page, whatever the text has in it")
        self.assertIn("小猫", frame.page)

    def test_report_and_ladder(self):
        report = self.seen.report()
        self.assertTrue(report)
        ladder = self.seen.ladder()
        self.assertEqual(len(ladder), 3 * len(self.seen.ids))
        last = ladder.where(level=2)
        self.assertTrue(all(row["rank"] == 1 for row in last), "the output agrees with itself")
        guesses = self.seen.guesses(-1, 0)
        self.assertEqual(guesses[0]["id"], last[0]["guess_id"])
        self.assertGreaterEqual(guesses[0]["p"], guesses[1]["p"])

    def test_html_of_tables_is_escaped(self):
        self.assertIn("&lt;b&gt;", qkv.Table([{"a": "<b>"}])._repr_html_())


if __name__ == "__main__":
    unittest.main()
