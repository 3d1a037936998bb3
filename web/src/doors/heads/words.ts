// Words of the heads found.
import { words } from "../../core/words";

export const say = words({
  en: {
    name: "Heads found", title: "Every head as a point", lead: "Measured over many texts of the built-in world. Choose what the axes mean; click a head to see what it does, in examples from strong to weak.",
    x: "across", y: "up", measuring: (done: number, of: number) => (of ? `Measuring the heads: ${done} of ${of} texts` : "Measuring the heads …"), failed: "The heads could not be measured:", hint: "Click a point, or use the arrow keys.",
    chosen: "Chosen head", link: "Link to this head", copied: "Copied", copy: "Copy the link", onText: "See it on your text", roles: "Roles", none: "No role was found: no interval lies above its threshold. That is an answer, too.", noneYet: "None so far. Roles that gold labels show are still being measured …", nearest: "What it scores highest in", meanwhile: "This takes a while and goes on in the background: look at another page and come back.",
    covers: (p: string) => `explains ${p} of its attention`, interval: (low: string, high: string, n: number, texts?: number) => `95 %: ${low} to ${high}, n = ${n}${texts ? ` in ${texts} texts` : ""}`, mass: (p: string) => `${p} of the word’s attention goes there`, cause: (p: string, others: string, pairs: number) => `patched alone, it brings ${p} of the answer back, other heads on average ${others} (${pairs} pairs of texts)`, noCause: "whether it carries anything from there is not known: no pairs of texts could be made", chance: (c: string) => `chance ${c}`, without: (what: string, c: string) => `without attention, ${what}: ${c}`,
    examplesTitle: (head: string) => `What ${head} looks at`, examplesLead: "Tokens that look (outlined), ordered by their largest weight off the first token: from the strongest tenth down to the weakest. The deeper a word, the more it is looked at.",
    decile: (d: number) => (d === 10 ? "strongest tenth" : d === 1 ? "weakest tenth" : `tenth ${11 - d}`), from: (rows: number, texts: number) => `${rows} tokens of ${texts} texts`, wait: "looking for examples …",
    twinsTitle: "Duplicate heads", twinsLead: "Heads that do nearly the same: similar maps (distance below 0.1), similar outputs (CKA above 0.9), and cutting both costs more than each alone.",
    twinsWait: (n: number) => `comparing pairs of heads … ${n} done`, twinsNone: (n: number) => `None of ${n} pairs is a duplicate. These are the closest:`, twinsFound: (n: number, all: number) => `${n} of ${all} pairs are duplicates.`,
    pair: "pair", distance: "distance of maps", cka: "CKA of outputs", synergy: "extra cost of cutting both", duplicate: "duplicate", yes: "yes", no: "no", measure: "measure", value: "value",
    explain: (d: { head: string; x: string; xv: string; y: string; yv: string; n: string }) => [`${d.head} stands at ${d.x} = ${d.xv} and ${d.y} = ${d.yv}, means over ${d.n} tokens.`, "A head has a role only if the whole 95 % interval of its score lies above the role’s threshold and above twice what uniform attention would score. Coverage is the share of all its attention that the role explains."],
    measures: {
      current: "on the token itself", previous: "on the previous token", back2: "on two back", back3: "on three back", back4: "on four back", next: "on the next token", at_current: "peak on itself", at_previous: "peak on previous", at_back2: "peak on two back", at_back3: "peak on three back",
      at_back4: "peak on four back", at_next: "peak on next", first: "on the first token", sink: "on the learned sink", entropy: "entropy, 0 to 1", distance: "distance in tokens", punctuation: "on punctuation, above chance", period: "on full stops", comma: "on commas", colon: "on colons",
      question: "on ? and !", newline: "on line breaks", special: "on special tokens", punctuation_mass: "punctuation, all", special_mass: "special tokens, all", from_punctuation: "from punctuation to punctuation", rare: "peak on the rarest word", rare2: "peak on the two rarest",
      confidence: "largest weight", spread: "spread of distance", duplicate: "on earlier copies", duplicate_mass: "earlier copies, all rows", induction: "after earlier copies", induction_mass: "after earlier copies, all rows", copying: "raises what it looks at", write: "size of what it writes",
      resting: "value of the first token", repeat_previous: "previous (random tokens)", repeat_duplicate: "copies (random tokens)", repeat_induction: "induction (random tokens)", repeat_duplicate_mass: "copies (random tokens), all rows", repeat_induction_mass: "induction (random tokens), all rows",
    } as Record<string, string>,
  },
  zh: {
    name: "发现的头", title: "每个头是一个点", lead: "在内置世界的许多文本上测量。横轴纵轴都可以换；点一个头，看它做什么，例子从强到弱。",
    x: "横轴", y: "纵轴", measuring: (done: number, of: number) => (of ? `正在测量各个头：${of} 篇文本已读 ${done} 篇` : "正在测量各个头……"), failed: "测量没有成功：", hint: "点击一个点，或用方向键。",
    chosen: "选中的头", link: "这个头的链接", copied: "已复制", copy: "复制链接", onText: "在自己的文本上看", roles: "角色", none: "没有找到角色：没有哪个分数的整个区间都在门槛之上。这也是一种回答。", noneYet: "目前还没有。按标注判断的角色还在测量……", nearest: "得分最高的几项", meanwhile: "测量需要一些时间，在后台进行：可以先看别的页面，回头再来。",
    covers: (p: string) => `解释了它 ${p} 的注意力`, interval: (low: string, high: string, n: number, texts?: number) => `95 %：${low} 到 ${high}，n = ${n}${texts ? `，${texts} 篇文本` : ""}`, mass: (p: string) => `这个词有 ${p} 的注意力在那里`, cause: (p: string, others: string, pairs: number) => `只修补这个头，找回 ${p} 的答案，其他头平均 ${others}（${pairs} 对文本）`, noCause: "它有没有从那里带来什么还不知道：没有能用的成对文本", chance: (c: string) => `随机水平 ${c}`, without: (what: string, c: string) => `不看注意力，${what}：${c}`,
    examplesTitle: (head: string) => `${head} 在看什么`, examplesLead: "框出的是正在看的词元，按它（首词元除外）的最大权重排列：从最强的十分之一到最弱的十分之一。颜色越深，看得越多。",
    decile: (d: number) => (d === 10 ? "最强的十分之一" : d === 1 ? "最弱的十分之一" : `第 ${11 - d} 个十分之一`), from: (rows: number, texts: number) => `${texts} 篇文本中的 ${rows} 个词元`, wait: "正在找例子……",
    twinsTitle: "功能重复的头", twinsLead: "做的事几乎一样的头：注意力图相近（距离小于 0.1），输出相近（CKA 大于 0.9），而且同时去掉比分别去掉的代价之和更大。",
    twinsWait: (n: number) => `正在两两比较……已完成 ${n} 对`, twinsNone: (n: number) => `${n} 对里没有重复的头。最接近的是：`, twinsFound: (n: number, all: number) => `${all} 对里有 ${n} 对重复。`,
    pair: "一对", distance: "注意力图的距离", cka: "输出的 CKA", synergy: "同时去掉的额外代价", duplicate: "重复", yes: "是", no: "否", measure: "指标", value: "数值",
    explain: (d: { head: string; x: string; xv: string; y: string; yv: string; n: string }) => [`${d.head}：${d.x} = ${d.xv}，${d.y} = ${d.yv}，是 ${d.n} 个词元的平均。`, "只有当分数的整个 95 % 区间都高于这个角色的门槛、也高于均匀注意力得分的两倍时，才算有这个角色。覆盖率是这个角色解释了它全部注意力的多少。"],
    measures: {
      current: "看自己", previous: "看前一个词元", back2: "看前第二个", back3: "看前第三个", back4: "看前第四个", next: "看后一个词元", at_current: "最大值在自己", at_previous: "最大值在前一个", at_back2: "最大值在前第二个", at_back3: "最大值在前第三个",
      at_back4: "最大值在前第四个", at_next: "最大值在后一个", first: "看首词元", sink: "看学到的汇", entropy: "熵，0 到 1", distance: "距离（词元）", punctuation: "看标点，超出随机", period: "看句号", comma: "看逗号", colon: "看冒号",
      question: "看问号、叹号", newline: "看换行", special: "看特殊词元", punctuation_mass: "看标点，全部", special_mass: "看特殊词元，全部", from_punctuation: "从标点看标点", rare: "最大值在最少见的词", rare2: "最大值在最少见的两个词",
      confidence: "最大权重", spread: "距离的离散程度", duplicate: "看前面的相同词元", duplicate_mass: "看相同词元，所有行", induction: "看相同词元之后", induction_mass: "看相同词元之后，所有行", copying: "抬高所看的词", write: "写出的大小",
      resting: "首词元的值", repeat_previous: "前一个（随机词元）", repeat_duplicate: "相同（随机词元）", repeat_induction: "归纳（随机词元）", repeat_duplicate_mass: "相同（随机词元），所有行", repeat_induction_mass: "归纳（随机词元），所有行",
    } as Record<string, string>,
  },
});
export const measureName = (name: string): string => say("measures")[name] ?? name;
