"""What a model writes, and how likely it finds what others wrote."""

from __future__ import annotations

from typing import Any, Callable, Optional, Sequence, Union, overload

from . import _core as native
from .generation import Generated, Generation, Translation, generated, stops
from .measures import Score
from .texts import Text, checked, is_many


class Writing:
    """The part of Model that writes and judges texts."""

    _core: native.Model

    @overload
    def generate(self, prompt: str, **options: Any) -> Generated: ...
    @overload
    def generate(self, prompt: list[str], **options: Any) -> list[Generated]: ...
    def generate(self, prompt: Any, *, on_text: Optional[Callable[[str], Any]] = None, **options: Any) -> Any:
        """Continues a text (or token ids); of a list of them each, at once. Each is the text it would be alone.

        What is left open is as the model's generation_config.json says; without it the most likely token is taken.
        Options: max_new, temperature, top_k, top_p, min_p, typical_p, repetition_penalty, presence_penalty,
        frequency_penalty, no_repeat_ngram, logit_bias, stop, seed, logprobs, draft, json_schema. on_text is told every
        piece as it is written; False ends the text.

        >>> import qkv
        >>> model = qkv.Model("world", threads=1)
        >>> question = "Emma gave a {} to Tom. What did Emma give to Tom?"
        >>> print(model.generate(question.format("pink kite"), max_new=12))
         Emma gave a pink kite to Tom.
        >>> for answer in model.generate([question.format("red hat"), question.format("green cup")], max_new=12):
        ...     print(answer)
         Emma gave a red hat to Tom.
         Emma gave a green cup to Tom.
        """
        how = _options(options)
        if is_many(prompt):
            if on_text is not None:
                raise TypeError("on_text is for one text, but there is a list; use start() for each")
            return [generated(made) for made in self._core.generate_many(prompt, how)]
        return generated(self._core.generate(prompt, how, on_text))

    def start(self, prompt: Text, **options: Any) -> Generation:
        """A text to iterate over as it is written; the options are those of generate().

        >>> import qkv
        >>> for piece in qkv.Model("world", threads=1).start("Mia has", max_new=3):
        ...     assert isinstance(piece.text, str)
        """
        return Generation(self._core.start(prompt, _options(options)))

    def search(
        self,
        prompt: Text,
        *,
        beams: int = 4,
        n: int = 1,
        max_new: Optional[int] = None,
        no_repeat_ngram: Optional[int] = None,
        length_penalty: Optional[float] = None,
        repetition_penalty: Optional[float] = None,
    ) -> list[Generated]:
        """A beam search: the n most likely whole texts, best first."""
        how = {name: value for name, value in locals().items() if name not in ("self", "prompt")}
        return [generated(made) for made in self._core.search(prompt, how)]

    def translate(
        self,
        text: Union[str, Sequence[str]],
        *,
        beams: Optional[int] = None,
        n: int = 1,
        max_new: Optional[int] = None,
        length_penalty: Optional[float] = None,
        prefix: str = "",
        rows: int = 64,
    ) -> Any:
        """The best translation of a text; of a list, a list. With n > 1, lists of n, best first.

        >>> import qkv
        >>> model = qkv.Model("translator", threads=1)
        >>> print(model.translate("Tom likes apples."))
        汤姆喜欢苹果。
        >>> best = model.translate(["Tom likes apples.", "Emma gave a red hat to Tom."])
        >>> print(best[1])
        艾玛送了一顶红帽子给汤姆。
        """
        how = {name: value for name, value in locals().items() if name not in ("self", "text")}
        texts = [text] if isinstance(text, str) else [checked("one of the texts", one, str) for one in text]
        found = [[Translation(*one) for one in all] for all in self._core.translate(texts, how)]
        nothing = Translation("", 0.0, [])
        best: list[Any] = found if n > 1 else [all[0] if all else nothing for all in found]
        return best[0] if isinstance(text, str) else best

    def score(self, text: Union[Text, list[Text]]) -> Any:
        """log p of every token of a text that the text itself determines; of a list, a list.

        >>> import qkv
        >>> model = qkv.Model("world", threads=1)
        >>> right, wrong = model.score(["Emma gave a pink kite to Tom.", "kite to a Tom gave Emma pink."])
        >>> right.perplexity < wrong.perplexity / 10
        True
        >>> len(right.log_p) == len(right.ids) - right.first
        True
        """
        many = is_many(text)
        found = [Score(*one) for one in self._core.likelihood(text if many else [text])]
        return found if many else found[0]

    def embed(self, texts: Union[Text, list[Text]], pooling: str = "usual") -> Any:
        """A vector of length 1 for each text: an array [text, width]; pooling is "usual", "mean", "first" or "last".

        >>> import qkv
        >>> model = qkv.Model("world", threads=1)
        >>> cat, dog, sum = model.embed(["Mia has a cat.", "Mia has a dog.", "17 + 4 = 21"])
        >>> cat @ dog > cat @ sum  # cosines
        True
        """
        return self._core.embed(texts if is_many(texts) else [texts], {"pooling": pooling})


_GENERATE = frozenset(
    "max_new temperature top_k top_p min_p typical_p repetition_penalty presence_penalty frequency_penalty"
    " no_repeat_ngram logit_bias stop seed logprobs draft json_schema".split()
)


def _options(options: dict[str, Any]) -> dict[str, Any]:
    for name in options:
        if name not in _GENERATE:
            raise TypeError(f"there is no option {name}; there are: {', '.join(sorted(_GENERATE))}")
    return {**options, "stop": stops(options.get("stop"))}
