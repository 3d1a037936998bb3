// Word lists: food and drink, animals and plants.
#include "world/lexicon.h"

namespace qkv::world {

// clang-format off
std::span<const Noun> fruit() {
  static constexpr Noun kTable[] = {
      {"apple", "苹果", "个"}, {"pear", "梨", "个"}, {"peach", "桃子", "个"},
      {"plum", "李子", "个"}, {"orange", "橙子", "个"}, {"lemon", "柠檬", "个"},
      {"lime", "青柠", "个"}, {"banana", "香蕉", "根"}, {"mango", "芒果", "个"},
      {"pineapple", "菠萝", "个"}, {"watermelon", "西瓜", "个"}, {"melon", "甜瓜", "个"},
      {"coconut", "椰子", "个"}, {"papaya", "木瓜", "个"}, {"kiwi", "猕猴桃", "个"},
      {"fig", "无花果", "个"}, {"apricot", "杏", "个"}, {"cherry", "樱桃", "颗"},
      {"strawberry", "草莓", "颗"}, {"grape", "葡萄", "颗"}, {"date", "枣", "颗"},
      {"persimmon", "柿子", "个"}, {"pomegranate", "石榴", "个"}, {"lychee", "荔枝", "颗"},
      {"tangerine", "橘子", "个"}, {"grapefruit", "柚子", "个"}, {"walnut", "核桃", "个"},
      {"chestnut", "栗子", "颗"}, {"egg", "鸡蛋", "个"}, {"duck egg", "鸭蛋", "个"},
      {"tomato", "西红柿", "个"}, {"potato", "土豆", "个"}, {"onion", "洋葱", "个"},
      {"carrot", "胡萝卜", "根"}, {"cucumber", "黄瓜", "根"}, {"cabbage", "卷心菜", "棵"},
      {"lettuce", "生菜", "棵"}, {"pumpkin", "南瓜", "个"}, {"radish", "萝卜", "个"},
      {"turnip", "芜菁", "个"}, {"pepper", "辣椒", "个"}, {"mushroom", "蘑菇", "个"},
      {"eggplant", "茄子", "个"}, {"sweet potato", "红薯", "个"}, {"leek", "韭葱", "根"},
      {"bamboo shoot", "竹笋", "根"}, {"lotus root", "莲藕", "节"}, {"cauliflower", "花椰菜", "棵"},
      {"beetroot", "甜菜根", "个"}, {"artichoke", "朝鲜蓟", "个"}, {"avocado", "牛油果", "个"},
      {"olive", "橄榄", "颗"}, {"raspberry", "树莓", "颗"}, {"dragon fruit", "火龙果", "个"},
      {"star fruit", "杨桃", "个"},
  };
  return kTable;
}

std::span<const Noun> baked() {
  static constexpr Noun kTable[] = {
      {"almond biscuit", "杏仁饼", "块"}, {"apple turnover", "苹果酥", "个"}, {"banana bread slice", "香蕉面包", "片"},
      {"bean bun", "豆沙包", "个"}, {"butter cookie", "黄油饼干", "块"}, {"cabbage pie", "白菜馅饼", "个"},
      {"carrot cake", "胡萝卜蛋糕", "块"}, {"cinnamon roll", "肉桂卷", "个"}, {"coconut macaroon", "椰子球", "个"},
      {"custard bun", "奶黄包", "个"}, {"date cake", "枣糕", "块"}, {"fruit tart", "水果挞", "个"},
      {"garlic roll", "蒜香面包", "个"}, {"honey cake", "蜂蜜蛋糕", "块"}, {"lemon tart", "柠檬挞", "个"},
      {"meat pie", "肉馅饼", "个"}, {"meringue", "蛋白糖", "块"}, {"mushroom pie", "蘑菇派", "个"},
      {"nut bar", "坚果棒", "根"}, {"oat cookie", "燕麦饼", "块"}, {"onion pancake", "葱油饼", "张"},
      {"pineapple bun", "菠萝包", "个"}, {"pumpkin pie", "南瓜派", "个"}, {"raisin bun", "葡萄干面包", "个"},
      {"sponge cake", "海绵蛋糕", "块"}, {"sugar bun", "糖包", "个"}, {"sweet dumpling", "汤圆", "个"},
      {"tea egg", "茶叶蛋", "个"}, {"walnut biscuit", "核桃酥", "块"}, {"wife cake", "老婆饼", "块"},
      {"cake", "蛋糕", "块"}, {"bun", "小圆面包", "个"}, {"pie", "馅饼", "个"},
      {"cookie", "饼干", "块"}, {"biscuit", "苏打饼", "块"}, {"muffin", "松饼", "个"},
      {"doughnut", "甜甜圈", "个"}, {"croissant", "牛角面包", "个"}, {"tart", "蛋挞", "个"},
      {"pancake", "煎饼", "张"}, {"waffle", "华夫饼", "块"}, {"dumpling", "饺子", "个"},
      {"steamed bun", "包子", "个"}, {"spring roll", "春卷", "个"}, {"moon cake", "月饼", "块"},
      {"rice ball", "饭团", "个"}, {"sandwich", "三明治", "个"}, {"bagel", "百吉饼", "个"},
      {"sesame ball", "麻团", "个"}, {"egg roll", "蛋卷", "根"}, {"brownie", "布朗尼", "块"},
      {"cheesecake", "芝士蛋糕", "块"}, {"gingerbread man", "姜饼人", "个"}, {"rice cake", "年糕", "块"},
      {"candied haw", "糖葫芦", "串"}, {"lollipop", "棒棒糖", "根"}, {"chocolate", "巧克力", "块"},
      {"toffee apple", "苹果糖", "个"}, {"cream puff", "泡芙", "个"}, {"fortune cookie", "幸运饼干", "块"},
      {"pretzel", "椒盐卷饼", "个"}, {"scone", "司康饼", "个"},
  };
  return kTable;
}

std::span<const Noun> dishes() {
  static constexpr Noun kTable[] = {
      {"noodle soup", "汤面", "碗", "bowl"}, {"rice porridge", "粥", "碗", "bowl"}, {"chicken soup", "鸡汤", "碗", "bowl"},
      {"tomato soup", "番茄汤", "碗", "bowl"}, {"onion soup", "洋葱汤", "碗", "bowl"}, {"fried rice", "炒饭", "盘", "plate"},
      {"salad", "沙拉", "盘", "plate"}, {"spaghetti", "意大利面", "盘", "plate"}, {"curry", "咖喱", "盘", "plate"},
      {"stew", "炖肉", "锅", "pot"}, {"mushroom soup", "蘑菇汤", "碗", "bowl"}, {"bean soup", "豆汤", "碗", "bowl"},
      {"tofu", "豆腐", "盘", "plate"}, {"fried fish", "炸鱼", "盘", "plate"}, {"roast duck", "烤鸭", "盘", "plate"},
      {"pumpkin soup", "南瓜汤", "碗", "bowl"}, {"wonton soup", "馄饨", "碗", "bowl"}, {"hot pot", "火锅", "锅", "pot"},
      {"oatmeal", "燕麦粥", "碗", "bowl"}, {"yogurt", "酸奶", "碗", "bowl"}, {"ice cream", "冰淇淋", "碗", "bowl"},
      {"rice pudding", "米布丁", "碗", "bowl"}, {"apple sauce", "苹果酱", "碗", "bowl"}, {"mashed potato", "土豆泥", "碗", "bowl"},
      {"fish soup", "鱼汤", "碗", "bowl"}, {"vegetable soup", "蔬菜汤", "碗", "bowl"}, {"egg soup", "蛋花汤", "碗", "bowl"},
      {"beef stew", "炖牛肉", "锅", "pot"},
  };
  return kTable;
}

std::span<const Noun> hot_drinks() {
  static constexpr Noun kTable[] = {
      {"tea", "茶", "杯", "cup"}, {"coffee", "咖啡", "杯", "cup"}, {"hot chocolate", "热巧克力", "杯", "cup"},
      {"green tea", "绿茶", "杯", "cup"}, {"black tea", "红茶", "杯", "cup"}, {"jasmine tea", "茉莉花茶", "杯", "cup"},
      {"ginger tea", "姜茶", "杯", "cup"}, {"hot milk", "热牛奶", "杯", "cup"}, {"mint tea", "薄荷茶", "杯", "cup"},
      {"oolong tea", "乌龙茶", "杯", "cup"}, {"chrysanthemum tea", "菊花茶", "杯", "cup"}, {"cocoa", "可可", "杯", "mug"},
      {"barley tea", "大麦茶", "杯", "cup"}, {"rose tea", "玫瑰花茶", "杯", "cup"},
  };
  return kTable;
}

std::span<const Noun> cold_drinks() {
  static constexpr Noun kTable[] = {
      {"lemonade", "柠檬水", "杯", "glass"}, {"orange juice", "橙汁", "杯", "glass"}, {"apple juice", "苹果汁", "杯", "glass"},
      {"milk", "牛奶", "杯", "glass"}, {"water", "水", "杯", "glass"}, {"iced tea", "冰茶", "杯", "glass"},
      {"soy milk", "豆浆", "杯", "glass"}, {"grape juice", "葡萄汁", "杯", "glass"}, {"plum juice", "酸梅汤", "杯", "glass"},
      {"coconut water", "椰子水", "杯", "glass"}, {"tomato juice", "番茄汁", "杯", "glass"}, {"carrot juice", "胡萝卜汁", "杯", "glass"},
      {"soda water", "苏打水", "杯", "glass"}, {"cherry juice", "樱桃汁", "杯", "glass"},
  };
  return kTable;
}

std::span<const Noun> pets() {
  static constexpr Noun kTable[] = {
      {"cat", "猫", "只"}, {"dog", "狗", "只"}, {"rabbit", "兔子", "只"},
      {"hamster", "仓鼠", "只"}, {"parrot", "鹦鹉", "只"}, {"goldfish", "金鱼", "条"},
      {"turtle", "乌龟", "只"}, {"duck", "鸭子", "只"}, {"goose", "鹅", "只"},
      {"hen", "母鸡", "只"}, {"rooster", "公鸡", "只"}, {"pony", "小马", "匹"},
      {"donkey", "驴", "头"}, {"goat", "山羊", "只"}, {"lamb", "小羊", "只"},
      {"piglet", "小猪", "头"}, {"guinea pig", "豚鼠", "只"}, {"canary", "金丝雀", "只"},
      {"kitten", "小猫", "只"}, {"puppy", "小狗", "只"}, {"pigeon", "鸽子", "只"},
      {"ferret", "雪貂", "只"}, {"tortoise", "陆龟", "只"}, {"cricket", "蟋蟀", "只"},
      {"llama", "羊驼", "只"},
  };
  return kTable;
}

std::span<const Noun> wild_animals() {
  static constexpr Noun kTable[] = {
      {"antelope", "羚羊", "只"}, {"armadillo", "犰狳", "只"}, {"baboon", "狒狒", "只"},
      {"bison", "野牛", "头"}, {"boar", "野猪", "头"}, {"chameleon", "变色龙", "只"},
      {"cheetah", "猎豹", "只"}, {"chimpanzee", "黑猩猩", "只"}, {"cormorant", "鸬鹚", "只"},
      {"falcon", "隼", "只"}, {"firefly", "萤火虫", "只"}, {"gecko", "壁虎", "只"},
      {"hare", "野兔", "只"}, {"heron", "苍鹭", "只"}, {"jellyfish", "水母", "只"},
      {"kingfisher", "翠鸟", "只"}, {"lark", "云雀", "只"}, {"lemur", "狐猴", "只"},
      {"lynx", "猞猁", "只"}, {"meerkat", "狐獴", "只"}, {"mongoose", "獴", "只"},
      {"moth", "飞蛾", "只"}, {"newt", "蝾螈", "只"}, {"nightingale", "夜莺", "只"},
      {"orangutan", "红毛猩猩", "只"}, {"oyster", "牡蛎", "只"}, {"partridge", "山鹑", "只"},
      {"pelican", "鹈鹕", "只"}, {"pheasant", "野鸡", "只"}, {"platypus", "鸭嘴兽", "只"},
      {"puffin", "海鹦", "只"}, {"quail", "鹌鹑", "只"}, {"raven", "渡鸦", "只"},
      {"red panda", "小熊猫", "只"}, {"robin", "知更鸟", "只"}, {"salamander", "娃娃鱼", "条"},
      {"scorpion", "蝎子", "只"}, {"sea turtle", "海龟", "只"}, {"seahorse", "海马", "只"},
      {"starfish", "海星", "只"}, {"tapir", "貘", "头"}, {"thrush", "画眉", "只"},
      {"toucan", "巨嘴鸟", "只"}, {"vulture", "秃鹫", "只"}, {"walrus", "海象", "头"},
      {"wasp", "黄蜂", "只"}, {"wombat", "袋熊", "只"}, {"yak", "牦牛", "头"},
      {"alligator", "短吻鳄", "条"}, {"albatross", "信天翁", "只"}, {"fox", "狐狸", "只"},
      {"wolf", "狼", "只"}, {"bear", "熊", "头"}, {"deer", "鹿", "头"},
      {"squirrel", "松鼠", "只"}, {"hedgehog", "刺猬", "只"}, {"mouse", "老鼠", "只"},
      {"owl", "猫头鹰", "只"}, {"crow", "乌鸦", "只"}, {"magpie", "喜鹊", "只"},
      {"sparrow", "麻雀", "只"}, {"swallow", "燕子", "只"}, {"eagle", "老鹰", "只"},
      {"swan", "天鹅", "只"}, {"frog", "青蛙", "只"}, {"toad", "蟾蜍", "只"},
      {"snake", "蛇", "条"}, {"lizard", "蜥蜴", "只"}, {"snail", "蜗牛", "只"},
      {"bee", "蜜蜂", "只"}, {"butterfly", "蝴蝶", "只"}, {"ladybird", "瓢虫", "只"},
      {"spider", "蜘蛛", "只"}, {"ant", "蚂蚁", "只"}, {"dragonfly", "蜻蜓", "只"},
      {"lion", "狮子", "头"}, {"tiger", "老虎", "只"}, {"elephant", "大象", "头"},
      {"giraffe", "长颈鹿", "只"}, {"zebra", "斑马", "匹"}, {"monkey", "猴子", "只"},
      {"gorilla", "大猩猩", "只"}, {"panda", "大熊猫", "只"}, {"koala", "考拉", "只"},
      {"kangaroo", "袋鼠", "只"}, {"camel", "骆驼", "头"}, {"crocodile", "鳄鱼", "条"},
      {"hippo", "河马", "头"}, {"rhino", "犀牛", "头"}, {"penguin", "企鹅", "只"},
      {"seal", "海豹", "只"}, {"whale", "鲸鱼", "头"}, {"dolphin", "海豚", "只"},
      {"shark", "鲨鱼", "条"}, {"octopus", "章鱼", "只"}, {"crab", "螃蟹", "只"},
      {"lobster", "龙虾", "只"}, {"badger", "獾", "只"}, {"otter", "水獭", "只"},
      {"beaver", "河狸", "只"}, {"mole", "鼹鼠", "只"}, {"bat", "蝙蝠", "只"},
      {"peacock", "孔雀", "只"}, {"ostrich", "鸵鸟", "只"}, {"flamingo", "火烈鸟", "只"},
      {"crane", "鹤", "只"}, {"stork", "鹳", "只"}, {"woodpecker", "啄木鸟", "只"},
      {"cuckoo", "杜鹃", "只"}, {"seagull", "海鸥", "只"}, {"leopard", "豹子", "只"},
      {"moose", "驼鹿", "头"}, {"reindeer", "驯鹿", "头"}, {"raccoon", "浣熊", "只"},
      {"skunk", "臭鼬", "只"}, {"weasel", "黄鼠狼", "只"}, {"sloth", "树懒", "只"},
      {"porcupine", "豪猪", "只"}, {"earthworm", "蚯蚓", "条"}, {"grasshopper", "蚱蜢", "只"},
  };
  return kTable;
}

std::span<const Noun> flowers() {
  static constexpr Noun kTable[] = {
      {"rose", "玫瑰", "朵"}, {"tulip", "郁金香", "朵"}, {"lily", "百合", "朵"},
      {"daisy", "雏菊", "朵"}, {"sunflower", "向日葵", "朵"}, {"orchid", "兰花", "朵"},
      {"peony", "牡丹", "朵"}, {"lotus", "荷花", "朵"}, {"violet", "紫罗兰", "朵"},
      {"daffodil", "水仙", "朵"}, {"chrysanthemum", "菊花", "朵"}, {"poppy", "罂粟花", "朵"},
      {"carnation", "康乃馨", "朵"}, {"iris", "鸢尾花", "朵"}, {"magnolia", "玉兰花", "朵"},
      {"camellia", "山茶花", "朵"}, {"azalea", "杜鹃花", "朵"}, {"hyacinth", "风信子", "朵"},
      {"marigold", "万寿菊", "朵"}, {"dandelion", "蒲公英", "朵"}, {"lavender", "薰衣草", "枝"},
      {"plum blossom", "梅花", "枝"}, {"hydrangea", "绣球花", "朵"}, {"morning glory", "牵牛花", "朵"},
      {"begonia", "海棠花", "朵"}, {"snowdrop", "雪花莲", "朵"}, {"primrose", "报春花", "朵"},
      {"bluebell", "风铃草", "朵"},
  };
  return kTable;
}

std::span<const Noun> trees() {
  static constexpr Noun kTable[] = {
      {"apple tree", "苹果树", "棵"}, {"pear tree", "梨树", "棵"}, {"oak", "橡树", "棵"},
      {"pine", "松树", "棵"}, {"willow", "柳树", "棵"}, {"maple", "枫树", "棵"},
      {"birch", "白桦树", "棵"}, {"cherry tree", "樱桃树", "棵"}, {"peach tree", "桃树", "棵"},
      {"plum tree", "李子树", "棵"}, {"palm", "棕榈树", "棵"}, {"ginkgo", "银杏树", "棵"},
      {"lemon tree", "柠檬树", "棵"}, {"walnut tree", "核桃树", "棵"}, {"mulberry tree", "桑树", "棵"},
      {"chestnut tree", "栗子树", "棵"}, {"poplar", "杨树", "棵"}, {"cypress", "柏树", "棵"},
      {"elm", "榆树", "棵"}, {"fig tree", "无花果树", "棵"}, {"olive tree", "橄榄树", "棵"},
      {"camphor tree", "樟树", "棵"}, {"persimmon tree", "柿子树", "棵"}, {"linden", "椴树", "棵"},
  };
  return kTable;
}

// clang-format on
}  // namespace qkv::world
