// What labs call their numbers, in Chinese. The program names them in English; one that is not here is shown as it is,
// so a new lab needs no change of the page.
import { lang } from "../core/store";

const chinese: Record<string, string> = {
  step: "步数", "head width": "头的宽度", "share of heads cut": "去掉的头所占份额",
  // induction
  "best induction score, 2 layers": "最高归纳得分，两层", "best induction score, 1 layer": "最高归纳得分，一层", "best induction score": "最高归纳得分",
  "loss of repeated tokens, 2 layers": "重复词元的损失，两层", "loss of repeated tokens, 1 layer": "重复词元的损失，一层", "loss of repeated tokens": "重复词元的损失",
  "share of the training the jump takes": "跃升占整个训练的份额", "2 layers": "两层", "1 layer": "一层",
  "most of the head's attention": "这个头的大部分注意力", "no head does it": "没有一个头会", "nats; it can copy": "纳特；会照搬", "nats; it cannot": "纳特；不会照搬", "sudden: a third of it at most": "突然：最多三分之一",
  // sixteen-heads
  "loss, nats per token": "损失，纳特／词元", heads: "头数", "share that can go by importance": "按重要性可以去掉的份额", "share that can go by chance": "随机去掉可以去掉的份额",
  "rise of the loss without half of them, by importance": "按重要性去掉一半，损失的上升", "rise of the loss without half of them, by chance": "随机去掉一半，损失的上升",
  "rise by chance less rise by importance": "随机的上升减去按重要性的上升", "rise of the loss": "损失的上升", "by importance": "按重要性", "by chance": "随机",
  "what Michel et al. 2019 found in WMT": "Michel 等 2019 年在 WMT 上的结果", "better than a random order": "比随机的次序好",
  // seats
  "seat of the previous-token head": "“前一个词元”头的座位", "its score": "它的得分", "seat of the induction head": "归纳头的座位", "the induction head's score": "归纳头的得分",
  "control: same weights, other texts: same previous-token seat": "对照：权重相同，文本不同：“前一个词元”头座位相同", "control: same weights, other texts: same induction seat": "对照：权重相同，文本不同：归纳头座位相同",
  "share of other seeds with the same previous-token seat": "“前一个词元”头座位相同的其他种子所占份额", "share of other seeds with the same induction seat": "归纳头座位相同的其他种子所占份额",
  "chance of as much agreement, previous-token": "碰巧同样一致的概率，“前一个词元”头", "chance of as much agreement, induction": "碰巧同样一致的概率，归纳头",
  "the role is there": "角色存在", "most seeds have it elsewhere": "多数种子在别的座位", "no more than by chance": "不超过碰巧",
  // thinking-aloud
  "eight digits: right with worked steps": "八个一位数：写出步骤的正确率", "eight digits: right at once": "八个一位数：直接回答的正确率", "eight digits: with steps less at once": "八个一位数：写出步骤减直接回答",
  "five two-digit numbers: right with worked steps": "五个两位数：写出步骤的正确率", "five two-digit numbers: right at once": "五个两位数：直接回答的正确率", "five two-digit numbers: with steps less at once": "五个两位数：写出步骤减直接回答",
  "a tenth of all problems": "全部题目的十分之一",
  // reading-writing
  "tokens read a second": "每秒预填充的词元", "tokens written a second": "每秒生成的词元", "tokens written a second, 8 answers at once": "每秒生成的词元，八个回答同批", "reading over writing": "预填充比生成快几倍",
  "8 answers at once over one": "八个回答同批比一个快几倍", "rows compared": "比较的行数", "cached differs from uncached, f32": "有缓存与无缓存不同的行，f32", "cached differs from uncached, bf16": "有缓存与无缓存不同的行，bf16",
  "clearly more than noise": "明显大于噪声", "no row may": "一行也不许",
  // causality
  families: "模型族", "rows left of a change": "改动左边的行", "of them changed, fresh models": "其中变了的，初始模型", "of them changed, trained models": "其中变了的，训练后的模型", "gradients of later tokens": "对后面词元的梯度", "of them not exactly 0": "其中不严格为 0 的",
  "control: share of changed tokens seen by their own row": "对照：改动的词元被自己那一行看到的份额", "control: share of own gradients not 0": "对照：对自己的梯度不为 0 的份额", "control: share of rows left that change in an encoder": "对照：编码器中左边会变的行的份额", "control: share of later gradients not 0 in an encoder": "对照：编码器中对后面的梯度不为 0 的份额",
  "none may": "一个也不许", "none may be": "一个也不许", "else the comparison sees nothing": "否则比较什么也看不到", "else the gradient sees nothing": "否则梯度什么也看不到", "a bidirectional model must fail": "双向的模型必须通不过",
  // scale
  "entropy at width 256, with": "宽度 256 的熵，有缩放", "entropy at width 256, without": "宽度 256 的熵，无缩放", "gradient of the softmax, width 256 over width 4, with": "softmax 的梯度，宽度 256 比宽度 4，有缩放", "gradient of the softmax, width 256 over width 4, without": "softmax 的梯度，宽度 256 比宽度 4，无缩放",
  "first gradient of W_Q and W_K, without over with": "W_Q 和 W_K 的第一个梯度，无缩放比有缩放", "loss of repeated tokens after training, with": "训练后重复词元的损失，有缩放", "loss of repeated tokens after training, without": "训练后重复词元的损失，无缩放", "loss without less loss with": "无缩放的损失减有缩放的损失",
  entropy: "熵", "gradient of the softmax": "softmax 的梯度", "with 1/sqrt(d)": "有 1/√d", without: "无缩放",
  "a fifth of uniform attention": "平均注意力的五分之一", "the scale keeps it soft": "缩放使它保持柔和", "half of it is gone": "少了一半", "the scale keeps it": "缩放保住了它", "it is smaller": "它更小", "nats; training suffers": "纳特；训练变差",
  // one-head
  "loss on the world, 1 head": "小世界上的损失，一个头", "loss on the world, 8 heads": "小世界上的损失，八个头", "world: 1 head less 8 heads": "小世界：一个头减八个头", "loss on two keys at once, 1 head": "同时要两个键的损失，一个头", "loss on two keys at once, 8 heads": "同时要两个键的损失，八个头", "two keys at once: 1 head less 8 heads": "同时要两个键：一个头减八个头",
  "nats per token: 8 heads are better": "纳特／词元：八个头更好", "nats: 8 heads are better": "纳特：八个头更好", "nats; guessing at random costs 2.3": "纳特；随机猜是 2.3",
};

const howChinese: Record<string, string> = {
  induction: "长 6 到 20 个随机词元的段落，在 64 个词元的文本中重复：1000 步，每步 24 段文本，宽度 64，4 个头。得分：在新的重复词元上，最好的头对“上次出现之后那个词元”的注意力。跃升的宽度是得分从上升的 10 % 到 90 % 所占的训练份额。随机猜要 4.16 纳特。",
  "sixteen-heads": "三层、每层 16 个头，学习内置的小世界，400 步。按梯度重要性给头排序，每去掉十分之一重新测一次，用 48 段文本；在另外 48 段上去掉它们（输出变为 0），并与三种随机次序比较。损失高出 1 % 就算上升。",
  seats: "两层、每层 8 个头，学习重复的随机词元，800 步。座位：第 0 层中最看前一个词元的头，第 1 层中最看“上次出现之后”的头。两个种子碰巧一致的机会是八分之一。对照：同样的初始权重，用别的文本训练。",
  "thinking-aloud": "两种题：八个一位数，3+9+…+4=43；直接回答，或者写出每个部分和 =12,…,43；以及五个两位数，要进位。两层，宽度 64，400 步和 700 步，每步 2048 个词元，所以不写步骤的模型看到的题更多。考试是 400 道没见过的题，逐个词元作答，最后的数必须正确。",
  "reading-writing": "八层，宽度 512，初始权重，bf16：读 256 个词元的提示，写 32 个词元，再让 8 个回答同批；各取五轮中最好的。100 个词元的 logits，分段经过缓存和逐个经过缓存，与一次普通的前向逐位比较。",
  causality: "七个解码器模型族，初始权重和训练 30 步之后。把某个位置起的所有词元换掉，逐位比较左边的 logits。一行的损失对后面词元的梯度必须严格为 0。对照：改动的那一行必须变；编码器能看两边，两项都必须通不过。",
  scale: "方差为 1 的查询和键，64 个键，头的宽度从 4 到 256：权重的熵除以 ln 64，以及概率对分数的导数的范数。然后让两层、一个宽 128 的头学习重复的随机词元，400 步，有缩放和没有缩放，初始权重保持方差为 1。",
  "one-head": "两层，宽度 64，1 个头或 8 个头，权重一样多：在内置的小世界上训练 500 步，看没见过的故事的损失；再用一个同时要两个键（求它们的值之和）的任务训练 800 步。",
};

const known = (english: string): string => chinese[english] ?? english;
export const labWord = (english: string): string => (lang() === "zh" ? known(english) : english);
export const labHow = (name: string, english: string): string => (lang() === "zh" ? howChinese[name] ?? english : english);
// "2 layers, step 88 of 1000": what a lab does right now.
export function labDoing(english: string): string {
  const found = lang() === "zh" ? /^(.*), step (\d+) of (\d+)$/.exec(english) : null;
  return found ? `${known(found[1])}，第 ${found[2]} 步，共 ${found[3]} 步` : labWord(english);
}
