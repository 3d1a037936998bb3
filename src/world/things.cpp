// Word lists: things to carry, wear, read, play and work with.
#include "world/lexicon.h"

namespace qkv::world {

// clang-format off
std::span<const Noun> trinkets() {
  static constexpr Noun kTable[] = {
      {"cufflink", "袖扣", "枚"}, {"tie pin", "领带夹", "枚"}, {"signet ring", "图章戒指", "枚"},
      {"lipstick", "口红", "支"}, {"perfume bottle", "香水瓶", "个"}, {"pocket watch", "怀表", "块"},
      {"dice", "骰子", "颗"}, {"domino", "骨牌", "张"}, {"playing card", "扑克牌", "张"},
      {"pressed leaf", "树叶标本", "片"}, {"pine cone", "松果", "个"}, {"snail shell", "蜗牛壳", "个"},
      {"crayon", "蜡笔", "支"}, {"chalk stick", "粉笔", "支"}, {"badge", "徽章", "枚"},
      {"keyring", "钥匙圈", "个"}, {"matchbox", "火柴盒", "个"}, {"tea tin", "茶叶罐", "个"},
      {"bamboo comb", "竹梳", "把"}, {"lucky charm", "护身符", "个"}, {"invitation", "请帖", "张"},
      {"receipt", "收据", "张"}, {"library card", "借书证", "张"}, {"bus ticket", "公共汽车票", "张"},
      {"fossil", "化石", "块"}, {"crystal", "水晶", "块"}, {"tassel", "流苏", "条"},
      {"key", "钥匙", "把"}, {"ring", "戒指", "枚"}, {"watch", "手表", "块"},
      {"coin", "硬币", "枚"}, {"button", "纽扣", "颗"}, {"letter", "信", "封"},
      {"map", "地图", "张"}, {"ticket", "车票", "张"}, {"photograph", "照片", "张"},
      {"pen", "钢笔", "支"}, {"pencil", "铅笔", "支"}, {"purse", "钱包", "个"},
      {"wallet", "皮夹", "个"}, {"comb", "梳子", "把"}, {"whistle", "哨子", "个"},
      {"necklace", "项链", "条"}, {"bracelet", "手镯", "只"}, {"brooch", "胸针", "枚"},
      {"earring", "耳环", "只"}, {"compass", "指南针", "个"}, {"medal", "奖章", "枚"},
      {"stamp", "邮票", "张"}, {"postcard", "明信片", "张"}, {"bookmark", "书签", "枚"},
      {"pocketknife", "小刀", "把"}, {"bamboo whistle", "竹哨", "个"}, {"tobacco tin", "烟盒", "个"},
      {"thimble", "顶针", "枚"}, {"marble", "弹珠", "颗"}, {"seashell", "贝壳", "枚"},
      {"feather", "羽毛", "根"}, {"pebble", "鹅卵石", "颗"}, {"acorn", "橡果", "颗"},
      {"magnet", "磁铁", "块"}, {"handkerchief", "手帕", "块"}, {"glass bead", "玻璃珠", "颗"},
      {"pearl", "珍珠", "颗"}, {"jade pendant", "玉佩", "块"}, {"seal", "印章", "枚"},
      {"eraser", "橡皮", "块"}, {"spectacle case", "眼镜盒", "个"}, {"hairpin", "发夹", "枚"},
      {"rubber band", "橡皮筋", "根"}, {"paper crane", "纸鹤", "只"}, {"chess piece", "棋子", "枚"},
      {"locket", "小盒坠", "个"},
  };
  return kTable;
}

std::span<const Noun> keepsakes() {
  static constexpr Noun kTable[] = {
      {"globe", "地球仪", "个"}, {"picture frame", "相框", "个"}, {"pillowcase", "枕套", "个"},
      {"cushion", "靠垫", "个"}, {"quilt", "被子", "床"}, {"towel", "毛巾", "条"},
      {"soap dish", "肥皂盒", "个"}, {"bookend", "书挡", "个"}, {"typewriter", "打字机", "台"},
      {"sewing kit", "针线盒", "个"}, {"picnic hamper", "野餐篮", "个"}, {"thermos", "保温瓶", "个"},
      {"lunch box", "饭盒", "个"}, {"wind chime", "风铃", "串"}, {"paperweight", "镇纸", "个"},
      {"abacus", "算盘", "把"}, {"ink brush", "毛笔", "支"}, {"inkstone", "砚台", "方"},
      {"paper fan", "折扇", "把"}, {"silk purse", "绸缎荷包", "个"}, {"porcelain figure", "瓷娃娃", "个"},
      {"snow globe", "雪花球", "个"}, {"metronome", "节拍器", "个"}, {"jewel case", "首饰匣", "个"},
      {"chessboard", "棋盘", "张"}, {"tea caddy", "茶叶盒", "个"}, {"cuckoo clock", "布谷鸟钟", "座"},
      {"weather vane", "风向标", "个"}, {"egg timer", "煮蛋计时器", "个"}, {"doorknob", "门把手", "个"},
      {"notebook", "笔记本", "本"}, {"umbrella", "雨伞", "把"}, {"fan", "扇子", "把"},
      {"mirror", "镜子", "面"}, {"bell", "铃铛", "个"}, {"candle", "蜡烛", "支"},
      {"lantern", "灯笼", "盏"}, {"music box", "音乐盒", "个"}, {"torch", "手电筒", "支"},
      {"teapot", "茶壶", "把"}, {"vase", "花瓶", "个"}, {"jar", "罐子", "个"},
      {"basket", "篮子", "个"}, {"box", "盒子", "个"}, {"bottle", "瓶子", "个"},
      {"pillow", "枕头", "个"}, {"blanket", "毯子", "条"}, {"lamp", "台灯", "盏"},
      {"alarm clock", "闹钟", "个"}, {"calendar", "日历", "本"}, {"paintbrush", "画笔", "支"},
      {"ink bottle", "墨水瓶", "个"}, {"stapler", "订书机", "个"}, {"ruler", "尺子", "把"},
      {"schoolbag", "书包", "个"}, {"suitcase", "箱子", "只"}, {"walking stick", "拐杖", "根"},
      {"telescope", "望远镜", "架"}, {"camera", "照相机", "台"}, {"radio", "收音机", "台"},
      {"toothbrush", "牙刷", "支"}, {"lucky knot", "中国结", "个"}, {"hourglass", "沙漏", "个"},
      {"thermometer", "温度计", "支"}, {"magnifying glass", "放大镜", "个"}, {"birdcage", "鸟笼", "个"},
      {"flowerpot", "花盆", "个"}, {"piggy bank", "存钱罐", "个"},
  };
  return kTable;
}

std::span<const Noun> clothes() {
  static constexpr Noun kTable[] = {
      {"hat", "帽子", "顶"}, {"cap", "鸭舌帽", "顶"}, {"scarf", "围巾", "条"},
      {"coat", "大衣", "件"}, {"jacket", "夹克", "件"}, {"shirt", "衬衫", "件"},
      {"sweater", "毛衣", "件"}, {"dress", "连衣裙", "条"}, {"skirt", "裙子", "条"},
      {"glove", "手套", "只"}, {"sock", "袜子", "只"}, {"shoe", "鞋子", "只"},
      {"boot", "靴子", "只"}, {"slipper", "拖鞋", "只"}, {"belt", "腰带", "条"},
      {"tie", "领带", "条"}, {"raincoat", "雨衣", "件"}, {"apron", "围裙", "条"},
      {"vest", "背心", "件"}, {"cloak", "斗篷", "件"}, {"shawl", "披肩", "条"},
      {"bow tie", "领结", "个"}, {"nightcap", "睡帽", "顶"}, {"straw hat", "草帽", "顶"},
      {"top hat", "礼帽", "顶"}, {"mitten", "连指手套", "只"}, {"waistcoat", "马甲", "件"},
      {"dressing gown", "晨袍", "件"}, {"uniform", "制服", "件"}, {"swimsuit", "泳衣", "件"},
  };
  return kTable;
}

std::span<const Noun> readables() {
  static constexpr Noun kTable[] = {
      {"book", "书", "本"}, {"novel", "小说", "本"}, {"diary", "日记", "本"},
      {"dictionary", "词典", "本"}, {"cookbook", "菜谱", "本"}, {"newspaper", "报纸", "份"},
      {"magazine", "杂志", "本"}, {"poem", "诗", "首"}, {"comic", "漫画", "本"},
      {"atlas", "地图册", "本"}, {"guidebook", "旅行指南", "本"}, {"songbook", "歌本", "本"},
      {"picture book", "图画书", "本"}, {"encyclopedia", "百科全书", "本"}, {"textbook", "课本", "本"},
      {"fairy tale", "童话", "篇"}, {"travel journal", "游记", "本"}, {"recipe", "食谱", "份"},
  };
  return kTable;
}

std::span<const Noun> instruments() {
  static constexpr Noun kTable[] = {
      {"violin", "小提琴", "把"}, {"guitar", "吉他", "把"}, {"flute", "长笛", "支"},
      {"drum", "鼓", "面"}, {"trumpet", "小号", "支"}, {"accordion", "手风琴", "架"},
      {"harmonica", "口琴", "支"}, {"banjo", "班卓琴", "把"}, {"clarinet", "单簧管", "支"},
      {"erhu", "二胡", "把"}, {"pipa", "琵琶", "把"}, {"bamboo flute", "竹笛", "支"},
      {"trombone", "长号", "支"}, {"oboe", "双簧管", "支"}, {"ukulele", "尤克里里", "把"},
      {"gong", "锣", "面"}, {"xylophone", "木琴", "架"}, {"tambourine", "铃鼓", "面"},
      {"saxophone", "萨克斯管", "支"}, {"lute", "鲁特琴", "把"}, {"mandolin", "曼陀林", "把"},
      {"bagpipe", "风笛", "支"}, {"cymbal", "钹", "副"}, {"triangle", "三角铁", "个"},
  };
  return kTable;
}

std::span<const Noun> tools() {
  static constexpr Noun kTable[] = {
      {"hammer", "锤子", "把"}, {"saw", "锯子", "把"}, {"rope", "绳子", "根"},
      {"shovel", "铁锹", "把"}, {"rake", "耙子", "把"}, {"broom", "扫帚", "把"},
      {"mop", "拖把", "个"}, {"bucket", "水桶", "个"}, {"axe", "斧头", "把"},
      {"screwdriver", "螺丝刀", "把"}, {"wrench", "扳手", "把"}, {"needle", "针", "根"},
      {"nail", "钉子", "颗"}, {"screw", "螺丝", "颗"}, {"drill", "电钻", "把"},
      {"watering can", "洒水壶", "把"}, {"hoe", "锄头", "把"}, {"file", "锉刀", "把"},
      {"wood plane", "刨子", "把"}, {"chisel", "凿子", "把"}, {"tape measure", "卷尺", "个"},
      {"paint pot", "油漆桶", "个"}, {"sponge", "海绵", "块"}, {"duster", "掸子", "把"},
      {"iron", "熨斗", "个"}, {"fishing rod", "鱼竿", "根"}, {"fishing net", "渔网", "张"},
      {"oar", "船桨", "支"}, {"toolbox", "工具箱", "个"}, {"pulley", "滑轮", "个"},
      {"crowbar", "撬棍", "根"}, {"trowel", "抹子", "把"},
  };
  return kTable;
}

std::span<const Noun> toys() {
  static constexpr Noun kTable[] = {
      {"ball", "球", "个"}, {"doll", "洋娃娃", "个"}, {"kite", "风筝", "只"},
      {"puzzle", "拼图", "幅"}, {"teddy bear", "玩具熊", "只"}, {"toy train", "玩具火车", "列"},
      {"spinning top", "陀螺", "个"}, {"yo-yo", "悠悠球", "个"}, {"balloon", "气球", "个"},
      {"puppet", "木偶", "个"}, {"skipping rope", "跳绳", "根"}, {"toy boat", "玩具船", "只"},
      {"building block", "积木", "块"}, {"paper plane", "纸飞机", "架"}, {"scooter", "滑板车", "辆"},
      {"skateboard", "滑板", "块"}, {"sled", "雪橇", "架"}, {"hoop", "铁环", "个"},
      {"toy soldier", "玩具兵", "个"}, {"rag doll", "布娃娃", "个"}, {"kaleidoscope", "万花筒", "个"},
      {"water pistol", "水枪", "把"}, {"toy drum", "拨浪鼓", "个"}, {"bubble wand", "泡泡棒", "根"},
      {"chess set", "象棋", "副"}, {"jigsaw", "七巧板", "副"}, {"pinwheel", "风车", "个"},
      {"toy robot", "玩具机器人", "个"},
  };
  return kTable;
}

std::span<const Noun> kitchenware() {
  static constexpr Noun kTable[] = {
      {"cup", "杯子", "个"}, {"plate", "盘子", "个"}, {"bowl", "碗", "个"},
      {"spoon", "勺子", "把"}, {"fork", "叉子", "把"}, {"knife", "餐刀", "把"},
      {"pot", "锅", "口"}, {"pan", "平底锅", "口"}, {"kettle", "水壶", "把"},
      {"mug", "马克杯", "个"}, {"saucer", "茶碟", "个"}, {"chopping board", "砧板", "块"},
      {"ladle", "汤勺", "把"}, {"wok", "炒锅", "口"}, {"steamer", "蒸笼", "个"},
      {"rolling pin", "擀面杖", "根"}, {"cake tin", "蛋糕模", "个"}, {"sieve", "筛子", "个"},
      {"grater", "擦丝器", "个"}, {"whisk", "打蛋器", "个"}, {"jug", "水罐", "个"},
      {"tray", "托盘", "个"}, {"teacup", "茶杯", "只"}, {"soup bowl", "汤碗", "个"},
      {"salt shaker", "盐瓶", "个"}, {"pepper mill", "胡椒瓶", "个"}, {"sugar bowl", "糖罐", "个"},
      {"butter dish", "黄油碟", "个"}, {"corkscrew", "开瓶器", "个"}, {"rice cooker", "电饭锅", "个"},
      {"tea tray", "茶盘", "个"}, {"cutting knife", "菜刀", "把"}, {"napkin", "餐巾", "块"},
      {"tablecloth", "桌布", "块"},
  };
  return kTable;
}

// clang-format on
}  // namespace qkv::world
