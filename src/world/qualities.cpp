// Word lists: adjectives by the kind of noun, and irregular verbs and plurals.
#include <vector>

#include "world/lexicon.h"

namespace qkv::world {

// clang-format off
std::span<const Adjective> thing_qualities() {
  static constexpr Adjective kTable[] = {
      {"old", "旧"}, {"new", "新"}, {"small", "小"}, {"big", "大"},
      {"shiny", "闪亮"}, {"plain", "朴素"}, {"pretty", "漂亮"}, {"strange", "奇怪"},
      {"lovely", "可爱"}, {"precious", "珍贵"}, {"broken", "破"}, {"clean", "干净"},
      {"dusty", "满是灰尘"}, {"battered", "破旧"}, {"simple", "简单"}, {"elegant", "优雅"},
      {"tiny", "小小"}, {"ordinary", "普通"}, {"famous", "有名"}, {"faded", "褪色"},
      {"handmade", "手工做"}, {"mysterious", "神秘"}, {"cheap", "便宜"}, {"expensive", "昂贵"},
      {"unusual", "特别"}, {"delicate", "精致"}, {"sturdy", "结实"}, {"useful", "有用"},
      {"borrowed", "借来"}, {"forgotten", "被人遗忘"}, {"antique", "古老"}, {"curious", "古怪"},
      {"splendid", "华丽"}, {"humble", "不起眼"}, {"funny", "好笑"}, {"spotless", "一尘不染"},
      {"crooked", "歪歪扭扭"}, {"lucky", "幸运"}, {"perfect", "完美"}, {"modest", "简朴"},
  };
  return kTable;
}

std::span<const Adjective> colours() {
  static constexpr Adjective kTable[] = {
      {"red", "红"}, {"blue", "蓝"}, {"green", "绿"}, {"yellow", "黄"},
      {"white", "白"}, {"black", "黑"}, {"purple", "紫色"}, {"orange", "橙色"},
      {"pink", "粉红色"}, {"brown", "棕色"}, {"grey", "灰色"}, {"golden", "金色"},
      {"silver", "银色"}, {"turquoise", "青绿色"}, {"crimson", "深红色"}, {"striped", "带条纹"},
      {"spotted", "带圆点"}, {"cream", "米色"}, {"violet", "紫罗兰色"}, {"scarlet", "鲜红色"},
  };
  return kTable;
}

std::span<const Adjective> baked_qualities() {
  static constexpr Adjective kTable[] = {
      {"fresh", "新鲜"}, {"sweet", "甜甜"}, {"delicious", "好吃"}, {"tiny", "小小"},
      {"enormous", "巨大"}, {"perfect", "完美"}, {"golden", "金黄"}, {"fragrant", "香喷喷"},
      {"tempting", "诱人"}, {"fine", "上好"}, {"warm", "热乎乎"}, {"crunchy", "脆脆"},
      {"heart-shaped", "心形"}, {"famous", "有名"}, {"homemade", "自家做"},
  };
  return kTable;
}

std::span<const Adjective> fruit_qualities() {
  static constexpr Adjective kTable[] = {
      {"fresh", "新鲜"}, {"ripe", "熟透"}, {"juicy", "多汁"}, {"tiny", "小小"},
      {"enormous", "巨大"}, {"perfect", "完美"}, {"round", "圆圆"}, {"crooked", "歪歪"},
      {"shiny", "亮亮"}, {"fine", "上好"}, {"wonderful", "极好"}, {"heavy", "沉甸甸"},
      {"plump", "饱满"}, {"lovely", "可爱"}, {"modest", "不起眼"},
  };
  return kTable;
}

std::span<const Adjective> animal_qualities() {
  static constexpr Adjective kTable[] = {
      {"fat", "胖"}, {"lazy", "懒"}, {"clever", "聪明"}, {"hungry", "饥饿"},
      {"noisy", "吵闹"}, {"young", "年轻"}, {"brave", "勇敢"}, {"shy", "害羞"},
      {"sleepy", "爱睡觉"}, {"proud", "骄傲"}, {"curious", "好奇"}, {"naughty", "调皮"},
      {"gentle", "温柔"}, {"white", "白"}, {"black", "黑"}, {"grey", "灰"},
      {"brown", "棕色"}, {"grumpy", "爱生气"}, {"polite", "有礼貌"}, {"thoughtful", "若有所思"},
      {"greedy", "贪吃"}, {"cheerful", "快活"}, {"suspicious", "疑心重"}, {"dignified", "威严"},
      {"stubborn", "倔强"}, {"talkative", "爱说话"},
  };
  return kTable;
}

std::span<const Adjective> person_qualities() {
  static constexpr Adjective kTable[] = {
      {"kind", "善良"}, {"cheerful", "快活"}, {"quiet", "安静"}, {"clever", "聪明"},
      {"patient", "有耐心"}, {"forgetful", "健忘"}, {"brave", "勇敢"}, {"shy", "害羞"},
      {"proud", "骄傲"}, {"honest", "诚实"}, {"generous", "大方"}, {"curious", "好奇"},
      {"stubborn", "固执"}, {"polite", "有礼貌"}, {"careful", "细心"}, {"careless", "粗心"},
      {"funny", "风趣"}, {"serious", "严肃"}, {"lazy", "懒惰"}, {"busy", "忙碌"},
      {"young", "年轻"}, {"tall", "高个子"}, {"thin", "瘦瘦"}, {"friendly", "友好"},
      {"gentle", "温和"}, {"sleepy", "爱睡觉"}, {"hard-working", "勤劳"}, {"absent-minded", "心不在焉"},
      {"talkative", "健谈"}, {"thoughtful", "体贴"}, {"optimistic", "乐观"}, {"modest", "谦虚"},
      {"hungry", "总是饿"}, {"punctual", "守时"}, {"imaginative", "想象力丰富"}, {"superstitious", "迷信"},
      {"adventurous", "爱冒险"}, {"sensible", "明理"}, {"mischievous", "淘气"}, {"good-natured", "好脾气"},
  };
  return kTable;
}

std::span<const IrregularVerb> irregular_verbs() {
  static constexpr IrregularVerb kTable[] = {
      {"be", "was", "been"}, {"have", "had", "had"}, {"do", "did", "done"},
      {"go", "went", "gone"}, {"come", "came", "come"}, {"say", "said", "said"},
      {"tell", "told", "told"}, {"think", "thought", "thought"}, {"know", "knew", "known"},
      {"see", "saw", "seen"}, {"hear", "heard", "heard"}, {"feel", "felt", "felt"},
      {"find", "found", "found"}, {"lose", "lost", "lost"}, {"give", "gave", "given"},
      {"take", "took", "taken"}, {"bring", "brought", "brought"}, {"buy", "bought", "bought"},
      {"sell", "sold", "sold"}, {"pay", "paid", "paid"}, {"cost", "cost", "cost"},
      {"put", "put", "put"}, {"keep", "kept", "kept"}, {"leave", "left", "left"},
      {"let", "let", "let"}, {"make", "made", "made"}, {"get", "got", "got"},
      {"hold", "held", "held"}, {"stand", "stood", "stood"}, {"sit", "sat", "sat"},
      {"lie", "lay", "lain"}, {"fall", "fell", "fallen"}, {"run", "ran", "run"},
      {"fly", "flew", "flown"}, {"swim", "swam", "swum"}, {"ride", "rode", "ridden"},
      {"drive", "drove", "driven"}, {"draw", "drew", "drawn"}, {"write", "wrote", "written"},
      {"read", "read", "read"}, {"sing", "sang", "sung"}, {"speak", "spoke", "spoken"},
      {"eat", "ate", "eaten"}, {"drink", "drank", "drunk"}, {"sleep", "slept", "slept"},
      {"wake", "woke", "woken"}, {"wear", "wore", "worn"}, {"break", "broke", "broken"},
      {"steal", "stole", "stolen"}, {"hide", "hid", "hidden"}, {"catch", "caught", "caught"},
      {"throw", "threw", "thrown"}, {"hit", "hit", "hit"}, {"cut", "cut", "cut"},
      {"shut", "shut", "shut"}, {"win", "won", "won"}, {"teach", "taught", "taught"},
      {"learn", "learned", "learned"}, {"forget", "forgot", "forgotten"}, {"forgive", "forgave", "forgiven"},
      {"understand", "understood", "understood"}, {"begin", "began", "begun"}, {"become", "became", "become"},
      {"grow", "grew", "grown"}, {"build", "built", "built"}, {"send", "sent", "sent"},
      {"lend", "lent", "lent"}, {"spend", "spent", "spent"}, {"spill", "spilled", "spilled"},
      {"shake", "shook", "shaken"}, {"bite", "bit", "bitten"}, {"blow", "blew", "blown"},
      {"choose", "chose", "chosen"}, {"feed", "fed", "fed"}, {"fight", "fought", "fought"},
      {"hang", "hung", "hung"}, {"hurt", "hurt", "hurt"}, {"lead", "led", "led"},
      {"light", "lit", "lit"}, {"mean", "meant", "meant"}, {"meet", "met", "met"},
      {"ring", "rang", "rung"}, {"rise", "rose", "risen"}, {"shine", "shone", "shone"},
      {"show", "showed", "shown"}, {"sweep", "swept", "swept"}, {"swing", "swung", "swung"},
      {"tear", "tore", "torn"}, {"weep", "wept", "wept"}, {"sew", "sewed", "sewn"},
      {"knit", "knitted", "knitted"}, {"creep", "crept", "crept"}, {"sneak", "sneaked", "sneaked"},
      {"bend", "bent", "bent"}, {"dig", "dug", "dug"}, {"freeze", "froze", "frozen"},
      {"set", "set", "set"}, {"slide", "slid", "slid"}, {"spread", "spread", "spread"},
      {"stick", "stuck", "stuck"}, {"strike", "struck", "struck"}, {"swear", "swore", "sworn"},
      {"bet", "bet", "bet"}, {"quit", "quit", "quit"}, {"quarrel", "quarrelled", "quarrelled"},
      {"travel", "travelled", "travelled"}, {"prefer", "preferred", "preferred"}, {"weigh", "weighed", "weighed"},
  };
  return kTable;
}

std::span<const std::string_view> regular_verbs() {
  static constexpr std::string_view kTable[] = {
      "accuse", "add", "admire", "admit", "agree", "answer", "apologise", "appear", "argue", "arrive",
      "ask", "avoid", "bake", "balance", "bark", "beg", "behave", "believe", "belong", "blink", "blush",
      "boil", "borrow", "bow", "brush", "bump", "burn", "bury", "call", "carry", "carve",
      "chase", "chat", "check", "cheer", "chew", "clap", "clean", "climb", "close", "collect", "comb",
      "comfort", "complain", "compute", "cook", "cough", "count", "cover", "cross", "cry", "curl", "dance", "decide",
      "deliver", "deny", "describe", "discover", "divide", "doubt", "dream", "dress", "drop", "dry",
      "empty", "enjoy", "enter", "envy", "escape", "examine", "exclaim", "explain", "fail", "fill", "finish",
      "fish", "fit", "fix", "float", "fold", "follow", "giggle", "greet", "grin", "groan",
      "grumble", "guard", "guess", "hand", "happen", "hate", "help", "hiss", "hop", "hope",
      "hug", "hum", "hurry", "imagine", "invent", "invite", "jump", "kick", "kiss", "knock",
      "land", "laugh", "lean", "lick", "lift", "like", "listen", "live", "lock", "look",
      "love", "marry", "measure", "mend", "miss", "mix", "move", "multiply", "murmur", "mutter",
      "name", "need", "nibble", "nod", "notice", "offer", "open", "order", "own", "pack",
      "paint", "park", "pass", "peel", "phone", "pick", "plan", "plant", "play", "please",
      "point", "polish", "pour", "practise", "praise", "promise", "pull", "push", "rain", "reach",
      "recognise", "refuse", "remember", "repair", "repeat", "reply", "rest", "return", "roar", "roll", "rub",
      "rush", "save", "scratch", "search", "seem", "share", "shiver", "shout", "sigh", "skip",
      "slip", "smell", "smile", "snap", "sneeze", "sniff", "snore", "snow", "solve", "sound",
      "sparkle", "splash", "squeeze", "stare", "start", "stay", "stop", "study", "stumble", "subtract",
      "suggest", "surprise", "suspect", "talk", "taste", "thank", "tickle", "tie", "touch", "treat",
      "trip", "trust", "try", "turn", "use", "vanish", "visit", "wag", "wait", "walk",
      "want", "warn", "wash", "watch", "water", "wave", "whisper", "whistle", "wink", "wish",
      "wonder", "work", "worry", "wrap", "yawn", "yell",
  };
  return kTable;
}

std::span<const IrregularPlural> irregular_plurals() {
  static constexpr IrregularPlural kTable[] = {
      {"knife", "knives"}, {"leaf", "leaves"}, {"loaf", "loaves"}, {"shelf", "shelves"},
      {"bookshelf", "bookshelves"}, {"wolf", "wolves"}, {"scarf", "scarves"}, {"half", "halves"},
      {"mouse", "mice"}, {"goose", "geese"}, {"tooth", "teeth"}, {"foot", "feet"},
      {"man", "men"}, {"woman", "women"}, {"child", "children"}, {"fisherman", "fishermen"},
      {"postman", "postmen"}, {"policeman", "policemen"}, {"watchman", "watchmen"}, {"sheep", "sheep"},
      {"deer", "deer"}, {"moose", "moose"}, {"reindeer", "reindeer"}, {"goldfish", "goldfish"},
      {"fish", "fish"}, {"tomato", "tomatoes"}, {"potato", "potatoes"}, {"mango", "mangoes"},
      {"echo", "echoes"}, {"hero", "heroes"}, {"octopus", "octopuses"}, {"lotus", "lotuses"},
      {"iris", "irises"}, {"bus", "buses"}, {"gingerbread", "gingerbread"}, {"stairs", "stairs"},
      {"person", "people"}, {"coachman", "coachmen"}, {"dice", "dice"}, {"starfish", "starfish"},
      {"jellyfish", "jellyfish"}, {"bison", "bison"}, {"platypus", "platypuses"}, {"walrus", "walruses"},
      {"lynx", "lynxes"}, {"leaf", "leaves"},
  };
  return kTable;
}

// clang-format on
std::span<const Noun* const> all_nouns() {
  static const std::vector<const Noun*> all = [] {
    std::vector<const Noun*> out;
    for (const auto table : {jobs(), trinkets(),     keepsakes(), clothes(), readables(), instruments(), tools(),
                             toys(), kitchenware(),  fruit(),     baked(),   dishes(),    hot_drinks(),  cold_drinks(),
                             pets(), wild_animals(), flowers(),   trees(),   vehicles(),  sights()}) {
      for (const Noun& noun : table) out.push_back(&noun);
    }
    return out;
  }();
  return all;
}

}  // namespace qkv::world
