// Words of the story of one token.
import { words } from "../../core/words";

export const say = words({
  en: {
    name: "One token", title: (t: string) => `The story of “${t}”`, lead: "Every number on its way from a word to the next one. Point at a cell: what it was made of lights up. Click it to keep its formula.",
    chooseToken: "Token", chooseLayer: "Layer", chooseHead: "Head", others: (n: number) => `${n} other products`, pick: "Point at a number to see how it came about.",
    how: "How this number came about", terms: "All products", check: (e: string) => `The formula and the model differ by ${e} at most in this step.`, previous: "Back", next: "Next", wait: "asking the model …",
    notPlain: "This model computes this step in another way than the plain formula, so it is not taken apart here.", tooLarge: "This matrix is large: only what the chosen number needs is shown.",
    stages: { embed: "embedding", norm: "norm", q: "query", k: "key", v: "value", scores: "q · k", softmax: "softmax", z: "z", concat: "concat", o: "W_O", mid: "+ residual", mlp: "feed-forward", post: "+ residual", logits: "logits", sample: "sampling", update: "training" },
    splitTitle: (h: number, d: number) => `One product for all heads: its columns are split into ${h} groups of ${d}`,
    texts: {
      update: (d: { token: string; p: string; rate: number; rise: string }) => `Suppose “${d.token}” is what really follows. The loss is −ln p, and its gradient by this token’s row of the output matrix is −(1 − p) · n. One step of plain gradient descent with rate ${d.rate} adds ${d.rate} × (1 − ${d.p}) × n: its logit here rises by ${d.rise}. Backpropagation finds such a step for every matrix, and for the embeddings of the tokens that were read.`,
      embed: (d: { id: number; width: number; token: string }) => `“${d.token}” has number ${d.id} in the vocabulary. Row ${d.id} of the embedding matrix is its vector of ${d.width} numbers. Training moves exactly these numbers: each step adds −lr × gradient to the rows of the tokens it read.`,
      norm: () => "Before a layer reads the residual stream x, its numbers are brought to one size: divided by their root mean square, times a learned weight.",
      q: (d: { width: number; heads: number; d: number }) => `W_Q has one group of ${d.d} columns for each of the ${d.heads} heads. The normalised row times this head’s columns is the query: what is this token looking for?`,
      k: () => "The same row times W_K is the token’s key: what it offers to be found by.",
      v: () => "The same row times W_V is its value: what it hands over to those who find it.",
      scores: (d: { d: number; scale: string }) => `The query is multiplied with the key of every token it may see. The sum of ${d.d} products is scaled by ${d.scale}.`,
      softmax: () => "e to the power of each score, divided by the sum of all: shares that add up to 100 %. This row is one row of the head’s attention map.",
      z: () => "Each value is weighted by its share, and all are added: what the head brings back.",
      concat: (d: { heads: number }) => `The z of all ${d.heads} heads side by side. The frame is this head’s.`,
      o: () => "W_O mixes what all heads brought into one vector as wide as the residual stream.",
      mid: () => "It is added to the residual stream: nothing is overwritten.",
      mlp: (d: { hidden: number; activation: string }) => `The feed-forward layer reads this token alone: ${d.hidden} hidden numbers, ${d.activation}, and back.`,
      post: () => "Added again. This is the input of the next layer.",
      logits: () => "After the last layer: norm, then one product with the vector of every token in the vocabulary. The 20 largest:",
      sample: () => "p = softmax(logit ÷ temperature). At temperature 0 the largest wins; above, one is drawn. The first page has the sliders.",
    },
  },
  zh: {
    name: "单个词元", title: (t: string) => `“${t}”的旅程`, lead: "从一个词到下一个词，每个数字都可以追问。指向一个格子，它的来源会亮起；点击可以留住它的公式。",
    chooseToken: "词元", chooseLayer: "层", chooseHead: "头", others: (n: number) => `其余 ${n} 个乘积`, pick: "指向一个数字，看它是怎样算出来的。",
    how: "这个数字的由来", terms: "全部乘积", check: (e: string) => `这一步里，公式与模型最多相差 ${e}。`, previous: "上一步", next: "下一步", wait: "正在问模型……",
    notPlain: "这个模型的这一步不是最简单的公式，这里不拆开。", tooLarge: "这个矩阵很大，只显示所选数字用到的部分。",
    stages: { embed: "词嵌入", norm: "归一化", q: "查询", k: "键", v: "值", scores: "q · k", softmax: "softmax", z: "z", concat: "拼接", o: "W_O", mid: "+ 残差", mlp: "前馈", post: "+ 残差", logits: "logits", sample: "采样", update: "训练" },
    splitTitle: (h: number, d: number) => `所有头一次乘完：列分成 ${h} 组，每组 ${d} 列`,
    texts: {
      update: (d: { token: string; p: string; rate: number; rise: string }) => `假设后面真的是“${d.token}”。损失是 −ln p，它对输出矩阵里这个词元那一行的梯度是 −(1 − p) · n。普通梯度下降以学习率 ${d.rate} 走一步，就加上 ${d.rate} × (1 − ${d.p}) × n：它在这里的 logit 升高 ${d.rise}。反向传播为每个矩阵、也为读到的词元的嵌入，都找到这样的一步。`,
      embed: (d: { id: number; width: number; token: string }) => `“${d.token}”在词表里是第 ${d.id} 号。嵌入矩阵的第 ${d.id} 行就是它的向量，共 ${d.width} 个数。训练改动的正是这些数：每一步给读到的词元的那些行加上 −lr × 梯度。`,
      norm: () => "一层读残差流 x 之前，先把它的数缩放到同样的大小：除以均方根，再乘以学到的权重。",
      q: (d: { width: number; heads: number; d: number }) => `W_Q 给 ${d.heads} 个头各准备了 ${d.d} 列。归一化后的行乘以这个头的列，就是查询：这个词元在找什么？`,
      k: () => "同一行乘以 W_K，就是它的键：别人凭什么找到它。",
      v: () => "同一行乘以 W_V，就是它的值：被找到时交出什么。",
      scores: (d: { d: number; scale: string }) => `查询与它能看到的每个词元的键相乘，${d.d} 个乘积相加，再乘以 ${d.scale}。`,
      softmax: () => "对每个分数取 e 的幂，再除以总和：份额相加为 100 %。这一行就是注意力图中的一行。",
      z: () => "每个值按份额加权，再相加：这个头带回来的东西。",
      concat: (d: { heads: number }) => `${d.heads} 个头的 z 并排放在一起，框出的是这个头的。`,
      o: () => "W_O 把各个头带回来的混合成一个与残差流同宽的向量。",
      mid: () => "加到残差流上：什么也没有被覆盖。",
      mlp: (d: { hidden: number; activation: string }) => `前馈层只读这一个词元：${d.hidden} 个隐藏数，${d.activation}，再变回来。`,
      post: () => "再加一次。这就是下一层的输入。",
      logits: () => "最后一层之后：归一化，再与词表里每个词元的向量相乘。最大的 20 个：",
      sample: () => "p = softmax(logit ÷ 温度)。温度为 0 时取最大的；大于 0 时按份额抽取。滑块在第一页。",
    },
  },
});
export type StageName = keyof ReturnType<typeof stageWords>;
const stageWords = () => say("stages");
