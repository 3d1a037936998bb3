// Words of the tour: the line of the documents, from a word to the next one, told with the numbers of the text on the page.
import { words } from "../core/words";

export interface TourFacts {
  tokens: number; token: string; id: string; width: number; headWidth: number; layers: number; heads: number; head: string; key: string; share: string; role: string;
  settled: string; first: string; guess: string; p: string; vocabulary: number;
}

export const say = words({
  en: {
    name: "Tour", start: "90-second tour", skip: "End the tour", next: "Next", back: "Back", pause: "Pause", play: "Go on", stepOf: (i: number, n: number) => `Step ${i} of ${n}`,
    steps: {
      tokens: ["A word becomes a number", (d: TourFacts) => `The model does not read letters. The text is cut into ${d.tokens} tokens, and each has a number: “${d.token}” is token ${d.id} of ${d.vocabulary}.`],
      vector: ["The number becomes a vector", (d: TourFacts) => `Its number picks one row of a table: ${d.width} numbers that say what “${d.token}” is like. Training has put them there. From now on, everything is arithmetic with this row.`],
      qkv: ["One vector, three questions", (d: TourFacts) => `Each head multiplies the row with its own W_Q, W_K and W_V. The query says what “${d.token}” is looking for, the key what a token offers, the value what it hands over. Each is ${d.headWidth} numbers long.`],
      match: ["Queries meet keys", (d: TourFacts) => `q · k says how well two tokens match. Divided by √${d.headWidth}, then softmax: the matches become shares that add up to 100 %. In ${d.head}, “${d.token}” gives ${d.share} to “${d.key}”.`],
      heads: ["Many heads look at once", (d: TourFacts) => `${d.layers} layers with ${d.heads} heads each, and every head looks for something else. ${d.role}`],
      output: ["W_O brings them together", () => "What the heads brought back is laid side by side, W_O mixes it into one vector, and that vector is added to the token’s row. Nothing is overwritten; layer after layer adds to it."],
      ladder: ["The guess takes shape", (d: TourFacts) => `Stop the model after any layer and ask it for its guess. At the start it says “${d.first}”; from ${d.settled} on it says “${d.guess}”.`],
      next: ["The next word", (d: TourFacts) => `The last row is compared with the vector of every token there is: ${d.vocabulary} numbers, and softmax makes chances of them. “${d.guess}” gets ${d.p}. One is chosen, put at the end of the text, and all of it begins again.`],
      cut: ["Does a head matter?", (d: TourFacts) => `Flip the switch to cut ${d.head}. If the answer changes, the head was needed for it; the number beside it says what the cut costs on other texts.`],
      thoughts: ["Why it must write down its thoughts", (d: TourFacts) => `For every token there are ${d.layers} layers of arithmetic and no more, however hard the question. What the model writes, it can read again: each written step buys another ${d.layers} layers. That is why it reaches answers on paper that it cannot find in its head.`],
    },
  },
  zh: {
    name: "导览", start: "90 秒导览", skip: "结束导览", next: "下一步", back: "上一步", pause: "暂停", play: "继续", stepOf: (i: number, n: number) => `第 ${i} 步，共 ${n} 步`,
    steps: {
      tokens: ["词变成数字", (d: TourFacts) => `模型不认识字。文字先切成 ${d.tokens} 个词元，每个词元有一个编号：“${d.token}”是 ${d.vocabulary} 个词元中的第 ${d.id} 号。`],
      vector: ["数字变成向量", (d: TourFacts) => `按编号取出表里的一行：${d.width} 个数，写着“${d.token}”是个什么样的词。这些数是训练出来的。从这里起，一切都是对这一行做算术。`],
      qkv: ["一个向量，三个问题", (d: TourFacts) => `每个头用自己的 W_Q、W_K、W_V 去乘这一行。查询说“${d.token}”在找什么，键说一个词元凭什么被找到，值说被找到时交出什么。各有 ${d.headWidth} 个数。`],
      match: ["查询遇上键", (d: TourFacts) => `q · k 表示两个词元有多匹配。除以 √${d.headWidth}，再做 softmax，就成了相加为 100 % 的份额。在 ${d.head} 里，“${d.token}”把 ${d.share} 给了“${d.key}”。`],
      heads: ["许多头同时在看", (d: TourFacts) => `共 ${d.layers} 层，每层 ${d.heads} 个头，各看各的。${d.role}`],
      output: ["W_O 把它们合起来", () => "各个头带回来的并排放好，由 W_O 混合成一个向量，加到这个词元的那一行上。什么也不覆盖，一层一层往上加。"],
      ladder: ["猜测渐渐成形", (d: TourFacts) => `让模型停在任意一层，问它猜什么。一开始它说“${d.first}”；从${d.settled}起，它说“${d.guess}”。`],
      next: ["下一个词", (d: TourFacts) => `最后一行与每个词元的向量相比，得到 ${d.vocabulary} 个数，softmax 把它们变成概率。“${d.guess}”占 ${d.p}。选出一个，接在文字后面，从头再来一遍。`],
      cut: ["这个头要紧吗？", (d: TourFacts) => `拨动开关，去掉 ${d.head}。如果答案变了，说明这里用得着它；旁边的数字是在其他文本上的代价。`],
      thoughts: ["为什么必须把想法写下来", (d: TourFacts) => `不管问题多难，每个词元都只有 ${d.layers} 层算术可用。但写下来的，模型可以再读：每多写一步，就多得 ${d.layers} 层。所以心里算不出的，写在纸上就能算出来。`],
    },
  },
});
export type TourStep = keyof ReturnType<typeof stepWords>;
const stepWords = () => say("steps");
