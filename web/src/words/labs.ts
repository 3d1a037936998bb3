// What labs call their numbers, in Chinese. The program names them in English; one that is not here is shown as it is,
// so a new lab needs no change of the page.
import { lang } from "../core/store";

const chinese: Record<string, string> = {
  step: "步数", "head width": "头的宽度", "share of heads cut": "去掉的头所占份额",
  // question-first
  "decoder: right with the question first": "解码器：问题在前的正确率", "decoder: right with the question last": "解码器：问题在后的正确率", "decoder: first less last": "解码器：在前减在后", "encoder-decoder: right with the question first": "编码器—解码器：问题在前的正确率", "encoder-decoder: right with the question last": "编码器—解码器：问题在后的正确率",
  "control: decoder, question last: right about one record alone": "对照：解码器，问题在后：单独一条记录的正确率", "control: a search: decoder, right with the question last": "对照：只是查找：解码器，问题在后的正确率",
  "it judges every record": "每条记录它都能判断", "more than noise": "大于噪声", "it sees both ways": "它两边都看得到", "it knows the table and cannot use it": "它知道这张表，却用不上", "else it can find nothing at all": "否则它什么都找不到",
  "decoder, question first": "解码器，问题在前", "decoder, question last": "解码器，问题在后", "encoder-decoder, question first": "编码器—解码器，问题在前", "encoder-decoder, question last": "编码器—解码器，问题在后",
  // phases
  "step nearest to the unigram": "最接近词频的步数", "step nearest to the bigram": "最接近二元统计的步数", "step nearest to the grammar": "最接近语法的步数", "step of induction": "学会归纳的步数",
  "bigram over unigram, steps": "二元统计比词频，步数之比", "grammar over bigram, steps": "语法比二元统计，步数之比", "induction over grammar, steps": "归纳比语法，步数之比",
  "unigram: distance when nearest, over an even path's": "词频：最近时的距离，比均匀路径的", "bigram: distance when nearest, over an even path's": "二元统计：最近时的距离，比均匀路径的", "grammar: distance when nearest, over an even path's": "语法：最近时的距离，比均匀路径的",
  "loss of known names at the end": "最后，说过的名字的损失", "control: one layer: loss of known names at the end": "对照：一层：最后，说过的名字的损失",
  "control: shuffled words: nearest to the grammar, nats": "对照：打乱词序：离语法最近时的距离，纳特", "control: shuffled words: loss of known names at the end": "对照：打乱词序：最后，说过的名字的损失",
  "distance of the model's guesses, nats": "模型的猜测的距离，纳特", unigram: "词频", bigram: "二元统计", grammar: "语法", "loss of known names": "说过的名字的损失",
  later: "更晚", "a phase of its own": "自成一个阶段", "nats, a third of a guess: it copies": "纳特，瞎猜的三分之一：它会照搬", "nats, a third of a guess: it cannot": "纳特，瞎猜的三分之一：它不会", "nothing of it is there": "语法一点也没有",
  // experts
  "4096 facts: known with experts": "4096 条事实：专家记住的份额", "4096 facts: known by the dense twin": "4096 条事实：稠密模型记住的份额", "4096 facts: experts less dense twin": "4096 条事实：专家减稠密模型", "multiplications for a token, experts over dense twin": "每个词元的乘法次数，专家比稠密模型",
  "control: 4096 facts: experts tied together less dense twin": "对照：4096 条事实：所有专家共用权重，减稠密模型", "control: 256 facts: known by the dense twin": "对照：256 条事实：稠密模型记住的份额", "4096 facts: known by a dense block with all the experts' weights": "4096 条事实：权重与全部专家一样多的稠密模型记住的份额",
  "a fifth of all facts": "全部事实的五分之一", "no more compute": "计算量不更多", "experts that are one must not help": "其实是同一个的专家不该有帮助", "with room for all it learns all": "装得下就都学得会",
  "4096 facts, experts": "4096 条事实，专家", "4096 facts, one dense block": "4096 条事实，稠密模型", "4096 facts, experts tied together": "4096 条事实，专家共用权重", "256 facts, one dense block": "256 条事实，稠密模型", "4096 facts, a large dense block": "4096 条事实，大的稠密模型",
  // embedding-walk
  "embedding: share that the word explains": "嵌入：来自所在的词的差别", "first layer: share that the word explains": "第一层：来自所在的词的差别", "last layer: share that the word explains": "最后一层：来自所在的词的差别", "last layer: the word read off the vector, in other texts": "最后一层：在别的文本里从向量读出所在的词",
  "control: untrained: last layer: share that the word explains": "对照：训练之前：最后一层，来自所在的词的差别", "control: trained on shuffled characters: last layer: share that the word explains": "对照：用打乱的字训练：最后一层，来自所在的词的差别", "cosine of the embedding's row, before and after training": "嵌入中这一行，训练前后的余弦", "cosine of the embedding's row with its end": "嵌入中这一行与终点的余弦", "share that the word explains": "来自所在的词的差别",
  embedding: "嵌入", "layer 1": "第 1 层", "layer 2": "第 2 层", "layer 3": "第 3 层", "one row for all": "所有文本同一行", "most of what differs": "大部分差别", "the three do not overlap": "三者互不重叠", "context alone must not be enough": "单有上下文不该够", "training alone must not be enough": "单有训练不该够", reading: "阅读", "reading shuffled characters": "读打乱的字",
  // two-it
  "told before: decoder, right at 它": "提示在前：解码器，在“它”处都对", "told before: likeness of the two 它, embedding": "提示在前：两个“它”的余弦，嵌入", "told before: likeness of the two 它, last layer": "提示在前：两个“它”的余弦，最后一层", "control: told after: decoder, right at 它": "对照：提示在后：解码器，在“它”处都对",
  "told after: decoder, right at the end of the sentence": "提示在后：解码器，在句末都对", "told after: encoder, right at 它": "提示在后：编码器，在“它”处都对", "told after: encoder, likeness of the two 它, last layer": "提示在后：编码器，两个“它”的余弦，最后一层", layer: "层", "likeness of the two 它": "两个“它”的余弦",
  "told before, decoder": "提示在前，解码器", "told after, decoder": "提示在后，解码器", "told after, encoder": "提示在后，编码器", "decoder, told before": "解码器，提示在前", "decoder, told after": "解码器，提示在后", "encoder, told after": "编码器，提示在后",
  "both of the twins": "孪生句两句都对", "one word, one vector": "一个词，一个向量", "two vectors": "两个向量", "it cannot look ahead": "它不能往后看", "the same decoder, once it has been told": "同一个解码器，读过提示之后",
  // analogy
  "right, nothing left out": "一个词都不排除的正确率", "right, the question's three words left out": "排除问题里三个词的正确率", "leak: right without arithmetic, if the country is left out": "漏洞：排除国家、不做加减的正确率", "what leaving the three words out adds": "排除三个词带来的增加", "control: untrained: right, three words left out": "对照：没有训练：排除三个词的正确率", "control: capitals of other countries: right, three words left out": "对照：别国的首都：排除三个词的正确率",
  "the nearest of all words": "所有词里最近的", "leaving words out must not be what makes it right": "答对不该靠排除", "nothing is learnt yet": "还什么都没学", "nothing ties them to the country": "它们与国家没有关联", "reading of countries": "读各国的句子", "reading of other countries' capitals": "读首都换成别国的句子",
  // induction
  "best induction score, 2 layers": "最高归纳得分，两层", "best induction score, 1 layer": "最高归纳得分，一层", "best induction score": "最高归纳得分",
  "loss of repeated tokens, 2 layers": "重复词元的损失，两层", "loss of repeated tokens, 1 layer": "重复词元的损失，一层", "loss of repeated tokens": "重复词元的损失",
  "share of the training the jump takes, in log steps": "跃升占整个训练的份额，按步数的对数", "2 layers": "两层", "1 layer": "一层",
  "most of the head's attention": "这个头的大部分注意力", "no head does it": "没有一个头会", "nats; it can copy": "纳特；会照搬", "nats; it cannot": "纳特；不会照搬", "sudden: an even rise takes 0.32": "突然：均匀上升要占 0.32",
  // sixteen-heads
  "loss, nats per token": "损失，纳特／词元", heads: "头数", "share that can go by importance": "按重要性可以去掉的份额", "share that can go by chance": "随机去掉可以去掉的份额",
  "rise of the loss without half of them, by importance": "按重要性去掉一半，损失的上升", "rise of the loss without half of them, by chance": "随机去掉一半，损失的上升",
  "share that can go one at a time": "单独去掉一个而无妨的头所占份额", "most of them, as Michel et al. 2019 found": "大多数，与 Michel 等 2019 年的结果一样", "cutting heads": "去掉头",
  "rise by chance less rise by importance": "随机的上升减去按重要性的上升", "rise of the loss": "损失的上升", "by importance": "按重要性", "by chance": "随机",
  "what Michel et al. 2019 found in WMT": "Michel 等 2019 年在 WMT 上的结果", "better than a random order": "比随机的次序好",
  // seats
  "seat of the previous-token head": "“前一个词元”头的座位", "its score": "它的得分", "seat of the induction head": "归纳头的座位", "the induction head's score": "归纳头的得分",
  "control: same weights, other texts: same previous-token seat": "对照：权重相同，文本不同：“前一个词元”头座位相同", "control: same weights, other texts: same induction seat": "对照：权重相同，文本不同：归纳头座位相同",
  "share of other seeds with the same previous-token seat": "“前一个词元”头座位相同的其他种子所占份额", "share of other seeds with the same induction seat": "归纳头座位相同的其他种子所占份额",
  "chance of as much agreement, previous-token": "碰巧同样一致的概率，“前一个词元”头", "chance of as much agreement, induction": "碰巧同样一致的概率，归纳头",
  "the role is there": "角色存在", "most seeds have it elsewhere": "多数种子在别的座位", "no more than by chance": "不超过碰巧",
  // thinking-aloud
  "1 swap: right at once": "换一次：直接回答的正确率", "16 swaps: right with steps": "换十六次：写出步骤的正确率", "16 swaps: right at once": "换十六次：直接回答的正确率", "16 swaps: with steps less at once": "换十六次：写步骤减直接回答", "control: 16 swaps: right with dots instead of steps": "对照：换十六次，步骤换成省略号", "control: 16 swaps: right with steps shuffled": "对照：换十六次，步骤打乱",
  swaps: "换杯子的次数", "share right": "正确率", "with steps": "写出步骤", "at once": "直接回答", "dots instead of steps": "省略号代替步骤", "steps shuffled": "步骤打乱", "with dots": "用省略号", "with shuffled steps": "步骤打乱", exam: "考试",
  "without many steps it can do it": "不需要很多步时它做得到", "it follows them": "它跟得上", "half of what chance leaves": "随机猜之外的一半", "tokens that say nothing must not help": "什么都不说的词元不该有帮助", "steps out of order must not help": "乱了次序的步骤不该有帮助",
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
  "two places: right with 1 head": "两个位置：一个头的正确率", "two places: right with 2 heads": "两个位置：两个头的正确率", "two places: right with 8 heads": "两个位置：八个头的正确率", "two places: 2 heads less 1 head": "两个位置：两个头减一个头", "two places: 8 heads less 1 head": "两个位置：八个头减一个头", "control: one place: right with 1 head": "对照：一个位置，一个头的正确率", "two places, with a feed-forward: right with 1 head": "两个位置，加前馈层：一个头的正确率",
  "it mixes them up": "它分不清", "each head has its place": "一个头管一个位置", "narrow heads can too": "窄头也可以", "far more than noise": "远大于噪声", "else it can learn nothing at all": "否则它什么都学不会",
  // three-matrices
  "3 back: right with three matrices": "往回第 3 个：三个矩阵的正确率", "3 back: right with Q = K": "往回第 3 个：Q = K 的正确率", "3 back: right with K = V": "往回第 3 个：K = V 的正确率", "looked up, head of width 2: right with three matrices": "查找，头宽 2：三个矩阵的正确率", "looked up, head of width 2: right with K = V": "查找，头宽 2：K = V 的正确率", "looked up, head of width 2: three matrices less K = V": "查找，头宽 2：三个矩阵减 K = V", "control: looked up, head of width 4: right with K = V": "对照：查找，头宽 4：K = V 的正确率", "control: 1 back: right with Q = K": "对照：往回第 1 个，Q = K 的正确率", "a fourth matrix, against three that hold it: largest difference of a weight": "第四个矩阵与把它乘进去的三个相比：权重的最大差别",
  "it looks where it must": "它看得到该看的地方", "it finds and it tells": "找得到，也说得出", "it cannot look past the near ones": "它越不过近处的词", "a value that is the key costs something": "值就是键，总有代价", "else tying breaks everything": "否则共用矩阵就什么都不行了", rounding: "舍入",
  // fixed-qkv
  "by content: right with matrices": "按内容找：用矩阵的正确率", "by content: right with learnt vectors for Q and K": "按内容找：Q 和 K 用学到的向量", "by content: right with a learnt vector for V": "按内容找：V 用学到的向量", "control: by place: right with learnt vectors for Q and K": "对照：按位置找，Q 和 K 用学到的向量",
  "it compares keys": "它能比较键", "it cannot compare": "它无法比较", "nothing is brought along": "什么也没带过来", "a place needs no matrix": "找位置不需要矩阵",
  // facts
  "facts: right": "事实：正确率", "facts: right with the feed-forwards cut": "事实：去掉前馈层的正确率", "read in the text: right": "读文中所写：正确率", "read in the text: right with the feed-forwards cut": "读文中所写：去掉前馈层的正确率",
  "facts: brought back by the feed-forwards alone": "事实：只换前馈层，恢复的份额", "facts: left with the feed-forwards of another country": "事实：前馈层换成另一个国家的，剩下的份额", "control: brought back by unrelated words": "对照：换无关的词，恢复的份额",
  "control: facts drawn anew in every text: right": "对照：每段文本的事实都重新抽取，正确率", "trained without feed-forwards: facts right": "不带前馈层训练：事实的正确率", "brought back by patching": "换入之后恢复的份额",
  "feed-forward, at the country": "前馈层，在国名处", "feed-forward, at the last word": "前馈层，在最后一个词处", "attention, at the country": "注意力，在国名处", "attention, at the last word": "注意力，在最后一个词处",
  "it knows them": "它知道", "it can read": "它会读", "most of it is gone": "大部分没有了", "attention reads without them": "注意力不靠前馈层也能读", "they carry the fact": "事实在它们那里", "attention alone does not": "光靠注意力不行", "they say nothing of it": "它们与此无关", "there is nothing to know": "没有什么可知道的",
  "learning facts": "学习事实", "learning facts without feed-forwards": "不带前馈层学习事实", patching: "换入",
};

// Of a built-in model: "world: heads".
const ofModel = /^(world|translator): (.*)$/;

const howChinese: Record<string, string> = {
  "question-first": "一张随机的表，规定 16 种物品各属于 16 个问题中的哪些。一段文本有六条记录，每条是一种物品和一种颜色；恰有一种物品属于这个问题，要答出它的颜色。判断物品属不属于问题，要靠同时看到两者的前馈层；六条记录要一起判断，只能在它们各自的位置上。两层，宽度 32，8 个头（解码器），或编码器、解码器各一层，400 步，每步 96 段文本，另有 128 对“问题和一条记录”，用同样的次序教这张表。对照：问题在后的解码器，单独一条记录必须判断得对；表若只是查找（每个问题一种物品），它必须找得到。在六种颜色里瞎猜，大约对 0.27。",
  phases: "一种 46 个词的语言：三类冠词之一，0 到 2 个形容词，同类的名词，它的名字，同类的动词，句号。每段文本给名词重新起名，所以只有名词再次出现时，名字才是已知的。两层注意力，宽度 64，没有前馈层，600 步，每步 24 段、每段 64 个词。在第 0、1、2……步，量模型的猜测离词频、二元统计和精确的语法有多远（KL）。离得最近的那一步，就是这个阶段的日期；归纳的日期，是说过的名字的损失第一次低于瞎猜的三分之一（0.92 纳特）。从无到有的任何一条路都会依次经过它们，所以还要求比“均匀路径”（一切以同样的快慢学会：最后的 logits 乘以 0 到 1）近得多。必须失败的对照：一层模型不会照搬；用打乱次序的词来学，既学不到语法，也学不会照搬。",
  experts: "要死记的事实：4096 对词（64 × 64），每对有随机抽取的 64 个值之一。一层，宽度 32，400 步，每步 512 条。专家：每个词元经过 16 个中的 2 个，每个宽 16。稠密模型：宽 38 的前馈层，乘法次数不少于两个专家加路由。数最后记住的事实；瞎猜对 1/64。对照：所有专家共用同一份权重，必须失去优势；只有 256 条时，稠密模型必须全部记住，可见它缺的是地方。另外列出、没有判据：权重与全部专家一样多的稠密模型，计算量是 7 倍。",
  "embedding-walk": "六种句式的中文句子，每个词两种，一个字一个词元，四句为一段。三层解码器，宽度 64，学习续写，200 步，每步 24 段。在另外 50 段里的每个“小”上量：向量的方差有多少在三个词的平均之间，以及向量离自己那个词的平均最近的比例，平均取自另外 50 段（瞎猜对三分之一）。必须失败的对照：训练之前的模型，以及用打乱字序的同样文本训练的模型。",
  "two-it": "四类 24 样东西；一句话里有不同类的两样，还有一个词提示“它”是哪一样：在“它”之前（小明渴了，桌上有书和柠檬茶，他拿起了它。）或之后（……拿起了它，很解渴。）。两层，宽度 64，学习在“它”处和句末说出指的是什么，600 步，每步 48 句。考试用训练中从未放在一起的两样东西，成对的孪生句只差提示的词；两句都对才算对，所以总说第一样或最近一样，永远不对。余弦：孪生句里两个“它”的向量。必须失败的对照：提示在后的解码器，在“它”处；同一个解码器到句末必须知道，两边都看得到的编码器在“它”处就必须知道。",
  analogy: "24 个国家和首都，只通过“地方 动词 东西”这样的句子认识：国家和它的首都共有四样东西（河、菜），国家有国家的动词，首都有首都的动词，一句话里从不同时有两者。一层，宽度 32，嵌入和输出用同一张表，学习续写，400 步，每步 32 段。然后问全部 552 个问题：在全部 157 个词里取余弦最大的。通常会排除问题自己的词；那样，不做加减，国家的近邻也可能碰对（漏洞）。什么都不排除时，近邻就是国家自己，是错的。必须失败的对照：训练之前，以及首都的东西属于别国。",
  induction: "长 6 到 20 个随机词元的段落，在 64 个词元的文本中重复：1000 步，每步 24 段文本，宽度 64，4 个头。得分：在新的重复词元上，最好的头对“上次出现之后那个词元”的注意力。跃升是得分从上升的 10 % 到 90 % 时步数的对数增加了多少，占整个训练的份额；从头到尾均匀上升的得分要占 0.32。随机猜要 4.16 纳特。",
  "sixteen-heads": "三层、每层 16 个头，学习内置的小世界，400 步。按梯度重要性给头排序，每去掉十分之一重新测一次，用 48 段文本；在另外 48 段上去掉它们（输出变为 0），并与三种随机次序比较。损失高出 1 % 就算上升。另外也逐个单独去掉。内置模型 world 和 translator 同样处理，用任何训练配方都没有用过的文本，排序和评判各 16 段，每个种子换一批；不在这里的模型就跳过。",
  seats: "两层、每层 8 个头，学习重复的随机词元，800 步。座位：第 0 层中最看前一个词元的头，第 1 层中最看“上次出现之后”的头。两个种子碰巧一致的机会是八分之一。对照：同样的初始权重，用别的文本训练。",
  "thinking-aloud": "球在五个杯子中的一个下面，每次交换两个杯子：换了 k 次之后球在哪里？理论上，深度固定的模型无法一下子跟上很多次交换。两层，宽度 64，学习换 1 到 16 次的题，400 步，每步 1024 个词元：直接回答，或者先写出每次交换之后的杯子。必须失败的对照：用同样多的省略号代替步骤，以及把步骤打乱。考试是另外 200 道题，逐个词元作答，只看最后的杯子。瞎猜对五分之一。",
  "reading-writing": "八层，宽度 512，初始权重，bf16：读 256 个词元的提示，写 32 个词元，再让 8 个回答同批；各取五轮中最好的。100 个词元的 logits，分段经过缓存和逐个经过缓存，与一次普通的前向逐位比较。",
  causality: "七个解码器模型族，初始权重和训练 30 步之后。把某个位置起的所有词元换掉，逐位比较左边的 logits。一行的损失对后面词元的梯度必须严格为 0。对照：改动的那一行必须变；编码器能看两边，两项都必须通不过。",
  scale: "方差为 1 的查询和键，64 个键，头的宽度从 4 到 256：权重的熵除以 ln 64，以及概率对分数的导数的范数。然后让两层、一个宽 128 的头学习重复的随机词元，400 步，有缩放和没有缩放，初始权重保持方差为 1。",
  "one-head": "四个比特的随机词元；目标是往回第 1 个词元的高两位和往回第 3 个词元的低两位。一层注意力，宽度 64，没有前馈层，1、2 或 8 个头，500 步，每步 24 段文本。一个头对两个位置只有一个 W_V，最多只能猜哪一半来自哪里：0.39。对照：两半都来自往回第 1 个，一个头必须学会。另外列出、但没有判据：一个头后面加上前馈层。",
  "three-matrices": "四个比特的随机词元；目标是往回第 3 个词元。一层注意力，一个宽 64 的头，没有前馈层，400 步，每步 24 段文本；共用的矩阵从相同的值开始，每步得到两份梯度之和。理论上，Q = K 又用 RoPE 的头，给每个词的权重都大于更早的词。对照：往回第 1 个词元，Q = K 必须学会。K = V 换一道题：按一样东西去找、说出另一样，8 个键各有 8 个值之一，头的宽度只有 2：键和值，它只能把一样摆成一圈。对照：宽度 4，两样都放得下。第四个矩阵放在查询和键之间：把它的权重与三个矩阵（其中一个是乘积）的权重相比。",
  "fixed-qkv": "次序随机的事实，8 个键各有 8 种值之一，然后按键提问：一层注意力，一个宽 64 的头，没有前馈层，400 步，每步 24 段文本；用矩阵，或者把 Q 和 K、或者 V 换成一个学到的向量。总说文中最常见的值，大约对三分之一。对照：往回第 3 个词元，是位置，Q 和 K 用学到的向量也必须找到。",
  facts: "16 个国家，每个有 8 种身份的城镇（首都、港口……），从 32 个城镇中抽取，抽一次就定下来；还有一面旗，颜色在每段文本里重新抽取，说三遍。三层，宽度 64，学习两者都有的文本，500 步。去掉：每个前馈层的输出换成它在同一问题、同一位置上对所有国家（或所有颜色）的平均。换入：改文问的是另一个国家的同一种身份，前面的颜色也不同；在问题的那些词上，前馈层输出它在原文里的值，反过来也做一次。必须失败的对照：换入所有不属于问题的词；以及每段文本的事实都重新抽取的世界。另外列出、但没有判据：不带前馈层训练的模型。瞎猜对三十二分之一。",
};

function known(english: string): string {
  const model = ofModel.exec(english);
  return model ? `${model[1]}：${known(model[2])}` : chinese[english] ?? english;
}
export const labWord = (english: string): string => (lang() === "zh" ? known(english) : english);
export const labHow = (name: string, english: string): string => (lang() === "zh" ? howChinese[name] ?? english : english);
// "2 layers, step 88 of 1000": what a lab does right now.
export function labDoing(english: string): string {
  const found = lang() === "zh" ? /^(.*), step (\d+) of (\d+)$/.exec(english) : null;
  return found ? `${known(found[1])}，第 ${found[2]} 步，共 ${found[3]} 步` : labWord(english);
}
