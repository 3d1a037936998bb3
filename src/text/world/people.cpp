// People: given names, family names, names of pets, trades, and what people like to do.
#include "text/world/lexicon.h"

namespace qkv::world {

// clang-format off
std::span<const GivenName> western_boys() {
  static constexpr GivenName kTable[] = {
      {"Tom", "汤姆"}, {"Ben", "本"}, {"Jack", "杰克"}, {"Peter", "彼得"},
      {"Paul", "保罗"}, {"David", "大卫"}, {"John", "约翰"}, {"James", "詹姆斯"},
      {"Henry", "亨利"}, {"George", "乔治"}, {"Oliver", "奥利弗"}, {"Oscar", "奥斯卡"},
      {"Leo", "利奥"}, {"Max", "马克斯"}, {"Felix", "费利克斯"}, {"Hugo", "雨果"},
      {"Simon", "西蒙"}, {"Daniel", "丹尼尔"}, {"Samuel", "塞缪尔"}, {"Adam", "亚当"},
      {"Alan", "艾伦"}, {"Albert", "阿尔伯特"}, {"Alex", "亚历克斯"}, {"Alfred", "阿尔弗雷德"},
      {"Andrew", "安德鲁"}, {"Anthony", "安东尼"}, {"Arthur", "亚瑟"}, {"Barry", "巴里"},
      {"Basil", "巴兹尔"}, {"Bernard", "伯纳德"}, {"Bill", "比尔"}, {"Bob", "鲍勃"},
      {"Brian", "布赖恩"}, {"Bruno", "布鲁诺"}, {"Carl", "卡尔"}, {"Charles", "查尔斯"},
      {"Chris", "克里斯"}, {"Colin", "科林"}, {"Dennis", "丹尼斯"}, {"Derek", "德里克"},
      {"Dylan", "迪伦"}, {"Edgar", "埃德加"}, {"Edward", "爱德华"}, {"Eric", "埃里克"},
      {"Ernest", "欧内斯特"}, {"Ethan", "伊桑"}, {"Eugene", "尤金"}, {"Evan", "埃文"},
      {"Francis", "弗朗西斯"}, {"Frank", "弗兰克"}, {"Fred", "弗雷德"}, {"Gavin", "加文"},
      {"Gilbert", "吉尔伯特"}, {"Gordon", "戈登"}, {"Graham", "格雷厄姆"}, {"Gregory", "格雷戈里"},
      {"Harold", "哈罗德"}, {"Harry", "哈里"}, {"Hector", "赫克托"}, {"Herbert", "赫伯特"},
      {"Howard", "霍华德"}, {"Ian", "伊恩"}, {"Isaac", "艾萨克"}, {"Ivan", "伊万"},
      {"Jacob", "雅各布"}, {"Jason", "贾森"}, {"Jerome", "杰罗姆"}, {"Joel", "乔尔"},
      {"Jonas", "约纳斯"}, {"Joseph", "约瑟夫"}, {"Julian", "朱利安"}, {"Keith", "基思"},
      {"Kenneth", "肯尼思"}, {"Kevin", "凯文"}, {"Lewis", "刘易斯"}, {"Liam", "利亚姆"},
      {"Lucas", "卢卡斯"}, {"Luke", "卢克"}, {"Marcus", "马库斯"}, {"Mark", "马克"},
      {"Martin", "马丁"}, {"Matthew", "马修"}, {"Maurice", "莫里斯"}, {"Michael", "迈克尔"},
      {"Miles", "迈尔斯"}, {"Nathan", "内森"}, {"Neil", "尼尔"}, {"Nicholas", "尼古拉斯"},
      {"Noah", "诺亚"}, {"Norman", "诺曼"}, {"Otto", "奥托"}, {"Owen", "欧文"},
      {"Patrick", "帕特里克"}, {"Philip", "菲利普"}, {"Quentin", "昆廷"}, {"Ralph", "拉尔夫"},
      {"Raymond", "雷蒙德"}, {"Richard", "理查德"}, {"Robert", "罗伯特"}, {"Robin", "罗宾"},
      {"Roger", "罗杰"}, {"Ronald", "罗纳德"}, {"Rupert", "鲁珀特"}, {"Ryan", "瑞安"},
      {"Sean", "肖恩"}, {"Sebastian", "塞巴斯蒂安"}, {"Stanley", "斯坦利"}, {"Stephen", "斯蒂芬"},
      {"Steve", "史蒂夫"}, {"Theo", "西奥"}, {"Timothy", "蒂莫西"}, {"Tobias", "托比亚斯"},
      {"Victor", "维克托"}, {"Vincent", "文森特"}, {"Walter", "沃尔特"}, {"Wilfred", "威尔弗雷德"},
      {"William", "威廉"}, {"Winston", "温斯顿"}, {"Zachary", "扎卡里"}, {"Diego", "迭戈"},
      {"Pablo", "巴勃罗"}, {"Mario", "马里奥"}, {"Luigi", "路易吉"}, {"Pierre", "皮埃尔"},
      {"Hans", "汉斯"}, {"Klaus", "克劳斯"}, {"Sven", "斯文"}, {"Lars", "拉尔斯"},
      {"Omar", "奥马尔"}, {"Ali", "阿里"}, {"Hassan", "哈桑"}, {"Ahmed", "艾哈迈德"},
      {"Yusuf", "优素福"}, {"Kofi", "科菲"}, {"Kwame", "夸梅"}, {"Raj", "拉杰"},
      {"Arjun", "阿琼"}, {"Vikram", "维克拉姆"}, {"Boris", "鲍里斯"}, {"Dmitri", "德米特里"},
      {"Igor", "伊戈尔"}, {"Sergei", "谢尔盖"}, {"Mateo", "马特奥"}, {"Rafael", "拉斐尔"},
      {"Antonio", "安东尼奥"}, {"Carlos", "卡洛斯"}, {"Fernando", "费尔南多"}, {"Emil", "埃米尔"},
      {"Anton", "安东"}, {"Viktor", "维克多"},
  };
  return kTable;
}

std::span<const GivenName> western_girls() {
  static constexpr GivenName kTable[] = {
      {"Anna", "安娜"}, {"Mary", "玛丽"}, {"Alice", "爱丽丝"}, {"Emma", "艾玛"},
      {"Lucy", "露西"}, {"Lily", "莉莉"}, {"Rose", "罗丝"}, {"Daisy", "黛西"},
      {"Ruby", "鲁比"}, {"Grace", "格蕾丝"}, {"Sophie", "索菲"}, {"Ella", "埃拉"},
      {"Mia", "米娅"}, {"Nora", "诺拉"}, {"Clara", "克拉拉"}, {"Julia", "朱莉娅"},
      {"Helen", "海伦"}, {"Jane", "简"}, {"Kate", "凯特"}, {"Laura", "劳拉"},
      {"Linda", "琳达"}, {"Lisa", "丽莎"}, {"Maria", "玛丽亚"}, {"Martha", "玛莎"},
      {"Molly", "莫莉"}, {"Nancy", "南希"}, {"Olivia", "奥利维娅"}, {"Polly", "波莉"},
      {"Rachel", "蕾切尔"}, {"Sarah", "萨拉"}, {"Susan", "苏珊"}, {"Tina", "蒂娜"},
      {"Vera", "薇拉"}, {"Wendy", "温迪"}, {"Zoe", "佐伊"}, {"Abigail", "阿比盖尔"},
      {"Ada", "埃达"}, {"Agnes", "阿格尼丝"}, {"Amanda", "阿曼达"}, {"Amelia", "阿米莉娅"},
      {"Amy", "埃米"}, {"Angela", "安杰拉"}, {"Annie", "安妮"}, {"Audrey", "奥黛丽"},
      {"Barbara", "芭芭拉"}, {"Beatrice", "比阿特丽斯"}, {"Bella", "贝拉"}, {"Bertha", "伯莎"},
      {"Betty", "贝蒂"}, {"Bridget", "布丽奇特"}, {"Camilla", "卡米拉"}, {"Carla", "卡拉"},
      {"Carol", "卡萝尔"}, {"Catherine", "凯瑟琳"}, {"Celia", "西莉亚"}, {"Charlotte", "夏洛特"},
      {"Chloe", "克洛伊"}, {"Cindy", "辛迪"}, {"Cora", "科拉"}, {"Dora", "多拉"},
      {"Doris", "多丽丝"}, {"Dorothy", "多萝西"}, {"Edith", "伊迪丝"}, {"Eleanor", "埃莉诺"},
      {"Eliza", "伊莱扎"}, {"Elizabeth", "伊丽莎白"}, {"Emily", "埃米莉"}, {"Erica", "埃丽卡"},
      {"Esther", "埃丝特"}, {"Ethel", "埃塞尔"}, {"Eva", "伊娃"}, {"Evelyn", "伊夫琳"},
      {"Fiona", "菲奥娜"}, {"Flora", "弗洛拉"}, {"Florence", "弗洛伦丝"}, {"Frances", "弗朗西丝"},
      {"Frida", "弗丽达"}, {"Georgia", "佐治娅"}, {"Gina", "吉娜"}, {"Gloria", "格洛丽亚"},
      {"Greta", "格蕾塔"}, {"Hannah", "汉娜"}, {"Harriet", "哈丽雅特"}, {"Heidi", "海蒂"},
      {"Hilda", "希尔达"}, {"Holly", "霍莉"}, {"Ida", "艾达"}, {"Irene", "艾琳"},
      {"Iris", "艾丽斯"}, {"Isabel", "伊莎贝尔"}, {"Ivy", "艾薇"}, {"Jenny", "珍妮"},
      {"Jessica", "杰西卡"}, {"Jill", "吉尔"}, {"Joan", "琼"}, {"Josephine", "约瑟芬"},
      {"Joyce", "乔伊丝"}, {"Judith", "朱迪丝"}, {"Karen", "凯伦"}, {"Lena", "莉娜"},
      {"Leonora", "莉奥诺拉"}, {"Louise", "路易丝"}, {"Lydia", "莉迪亚"}, {"Mabel", "梅布尔"},
      {"Maggie", "玛吉"}, {"Margaret", "玛格丽特"}, {"Maud", "莫德"}, {"Melissa", "梅利莎"},
      {"Mildred", "米尔德丽德"}, {"Miriam", "米丽娅姆"}, {"Monica", "莫妮卡"}, {"Naomi", "娜奥米"},
      {"Natalie", "纳塔莉"}, {"Nina", "尼娜"}, {"Olga", "奥尔加"}, {"Pamela", "帕梅拉"},
      {"Patricia", "帕特里夏"}, {"Paula", "葆拉"}, {"Pearl", "珀尔"}, {"Penelope", "佩内洛普"},
      {"Phoebe", "菲比"}, {"Rebecca", "丽贝卡"}, {"Rita", "丽塔"}, {"Rosa", "罗莎"},
      {"Ruth", "露丝"}, {"Sally", "萨莉"}, {"Selma", "塞尔玛"}, {"Sheila", "希拉"},
      {"Sonia", "索尼娅"}, {"Stella", "斯特拉"}, {"Sylvia", "西尔维娅"}, {"Tessa", "特莎"},
      {"Ursula", "厄休拉"}, {"Valerie", "瓦莱丽"}, {"Vanessa", "瓦妮莎"}, {"Victoria", "维多利亚"},
      {"Viola", "维奥拉"}, {"Violet", "瓦奥莱特"}, {"Virginia", "弗吉尼亚"}, {"Winifred", "威妮弗雷德"},
      {"Yvonne", "伊冯娜"}, {"Carmen", "卡门"}, {"Lucia", "露西娅"}, {"Elena", "埃莱娜"},
      {"Sofia", "索菲娅"}, {"Giulia", "朱利娅"}, {"Claire", "克莱尔"}, {"Ingrid", "英格丽德"},
      {"Astrid", "阿斯特丽德"}, {"Fatima", "法蒂玛"}, {"Layla", "莱拉"}, {"Amina", "阿米娜"},
      {"Priya", "普里娅"}, {"Lakshmi", "拉克什米"}, {"Natasha", "娜塔莎"}, {"Svetlana", "斯维特兰娜"},
      {"Tatiana", "塔季扬娜"}, {"Yuki", "由纪"}, {"Aiko", "爱子"}, {"Hanako", "花子"},
  };
  return kTable;
}

std::span<const GivenName> chinese_boys() {
  static constexpr GivenName kTable[] = {
      {"Wei", "伟"}, {"Ming", "明"}, {"Jun", "军"}, {"Lei", "磊"},
      {"Qiang", "强"}, {"Bo", "波"}, {"Gang", "刚"}, {"Peng", "鹏"},
      {"Hao", "浩"}, {"Tao", "涛"}, {"Chao", "超"}, {"Yong", "勇"},
      {"Jie", "杰"}, {"Bin", "斌"}, {"Kai", "凯"}, {"Liang", "亮"},
      {"Long", "龙"}, {"Feng", "峰"}, {"Hui", "辉"}, {"Jian", "健"},
      {"Xiaoming", "小明"}, {"Xiaogang", "小刚"}, {"Xiaolong", "小龙"}, {"Dawei", "大伟"},
      {"Dahai", "大海"}, {"Jianguo", "建国"}, {"Jianhua", "建华"}, {"Zhiqiang", "志强"},
      {"Zhiming", "志明"}, {"Zhiyuan", "志远"}, {"Wenjie", "文杰"}, {"Wenbin", "文斌"},
      {"Wenhao", "文浩"}, {"Haoran", "浩然"}, {"Haoyu", "浩宇"}, {"Zixuan", "子轩"},
      {"Zihan", "子涵"}, {"Yuxuan", "宇轩"}, {"Yuhang", "宇航"}, {"Tianyu", "天宇"},
      {"Tianming", "天明"}, {"Guoqiang", "国强"}, {"Guohua", "国华"}, {"Yongjun", "永军"},
      {"Yongming", "永明"}, {"Junjie", "俊杰"}, {"Junfeng", "俊峰"}, {"Mingyuan", "明远"},
      {"Minghui", "明辉"}, {"Ruilin", "瑞霖"}, {"Bowen", "博文"}, {"Boyuan", "博远"},
      {"Chengwu", "成武"}, {"Chunsheng", "春生"}, {"Dongsheng", "东升"}, {"Fusheng", "福生"},
      {"Guangming", "光明"}, {"Haibo", "海波"}, {"Haiyang", "海洋"}, {"Hongtao", "洪涛"},
      {"Jiahao", "家豪"}, {"Jiaming", "家明"}, {"Jingwen", "敬文"}, {"Lixin", "立新"},
      {"Lianghua", "良华"}, {"Pingan", "平安"}, {"Qingshan", "青山"}, {"Renjie", "仁杰"},
      {"Shaohua", "少华"}, {"Shiming", "世明"}, {"Shuming", "书明"}, {"Songlin", "松林"},
      {"Weidong", "卫东"}, {"Weiguo", "卫国"}, {"Weimin", "为民"}, {"Xinyu", "新宇"},
      {"Xuefeng", "学峰"}, {"Yaozong", "耀宗"}, {"Yifan", "一凡"}, {"Yunfei", "云飞"},
      {"Zhengyi", "正义"}, {"Zhenhua", "振华"}, {"Zhigang", "志刚"},
  };
  return kTable;
}

std::span<const GivenName> chinese_girls() {
  static constexpr GivenName kTable[] = {
      {"Fang", "芳"}, {"Na", "娜"}, {"Min", "敏"}, {"Jing", "静"},
      {"Li", "丽"}, {"Yan", "燕"}, {"Ting", "婷"}, {"Xue", "雪"},
      {"Mei", "梅"}, {"Lan", "兰"}, {"Ying", "英"}, {"Juan", "娟"},
      {"Xia", "霞"}, {"Ping", "萍"}, {"Hong", "红"}, {"Yun", "云"},
      {"Qin", "琴"}, {"Dan", "丹"}, {"Lin", "琳"}, {"Yue", "月"},
      {"Xiaohong", "小红"}, {"Xiaofang", "小芳"}, {"Xiaoli", "小丽"}, {"Xiaoyan", "小燕"},
      {"Xiaomei", "小梅"}, {"Meiling", "美玲"}, {"Meihua", "美华"}, {"Meili", "美丽"},
      {"Meixia", "美霞"}, {"Lihua", "丽华"}, {"Lina", "丽娜"}, {"Liping", "丽萍"},
      {"Yulan", "玉兰"}, {"Yuzhen", "玉珍"}, {"Yufen", "玉芬"}, {"Yumei", "玉梅"},
      {"Yuhua", "玉华"}, {"Guilan", "桂兰"}, {"Guiying", "桂英"}, {"Guihua", "桂花"},
      {"Xiuying", "秀英"}, {"Xiulan", "秀兰"}, {"Xiuzhen", "秀珍"}, {"Xiuhua", "秀华"},
      {"Shufen", "淑芬"}, {"Shuzhen", "淑珍"}, {"Shulan", "淑兰"}, {"Shumin", "淑敏"},
      {"Yating", "雅婷"}, {"Yaqin", "雅琴"}, {"Yajing", "雅静"}, {"Xinyi", "欣怡"},
      {"Xinyue", "欣悦"}, {"Zihan", "紫涵"}, {"Ziyan", "紫嫣"}, {"Shihan", "诗涵"},
      {"Shiyu", "诗雨"}, {"Yuhan", "雨涵"}, {"Yutong", "雨桐"}, {"Kexin", "可欣"},
      {"Keer", "可儿"}, {"Menglan", "梦兰"}, {"Mengyao", "梦瑶"}, {"Mengjie", "梦洁"},
      {"Siyu", "思雨"}, {"Siqi", "思琪"}, {"Jiayi", "佳怡"}, {"Jiahui", "佳慧"},
      {"Jiaqi", "佳琪"}, {"Huimin", "慧敏"}, {"Huifang", "慧芳"}, {"Huilan", "慧兰"},
      {"Chunmei", "春梅"}, {"Chunhua", "春花"}, {"Qiuyue", "秋月"}, {"Qiuyan", "秋燕"},
      {"Dongmei", "冬梅"}, {"Xuemei", "雪梅"}, {"Xueqin", "雪琴"}, {"Hongmei", "红梅"},
      {"Hongyan", "红艳"}, {"Fengying", "凤英"}, {"Fengxia", "凤霞"}, {"Cuihua", "翠花"},
      {"Cuilan", "翠兰"}, {"Aihua", "爱华"}, {"Ailing", "爱玲"}, {"Yanhong", "艳红"},
      {"Wenjing", "文静"}, {"Wenli", "文丽"},
  };
  return kTable;
}

std::span<const GivenName> western_families() {
  static constexpr GivenName kTable[] = {
      {"Smith", "史密斯"}, {"Jones", "琼斯"}, {"Brown", "布朗"}, {"Taylor", "泰勒"},
      {"Wilson", "威尔逊"}, {"Evans", "埃文斯"}, {"Walker", "沃克"}, {"White", "怀特"},
      {"Green", "格林"}, {"Black", "布莱克"}, {"Hall", "霍尔"}, {"Wood", "伍德"},
      {"Baker", "贝克"}, {"Cook", "库克"}, {"Cooper", "库珀"}, {"Carter", "卡特"},
      {"Parker", "帕克"}, {"Turner", "特纳"}, {"Morgan", "摩根"}, {"Bell", "贝尔"},
      {"Murphy", "墨菲"}, {"Kelly", "凯利"}, {"Bailey", "贝利"}, {"Bennett", "贝内特"},
      {"Gray", "格雷"}, {"Hughes", "休斯"}, {"Price", "普赖斯"}, {"Palmer", "帕尔默"},
      {"Mills", "米尔斯"}, {"Grant", "格兰特"}, {"Knight", "奈特"}, {"Fox", "福克斯"},
      {"Stone", "斯通"}, {"Webb", "韦布"}, {"Marsh", "马什"}, {"Pond", "庞德"},
      {"Barker", "巴克"}, {"Potter", "波特"}, {"Fisher", "费舍尔"}, {"Archer", "阿彻"},
      {"Weaver", "韦弗"}, {"Carpenter", "卡彭特"}, {"Butler", "巴特勒"}, {"Bishop", "毕晓普"},
      {"Dixon", "狄克逊"}, {"Ellis", "埃利斯"}, {"Foster", "福斯特"}, {"Gibson", "吉布森"},
      {"Harper", "哈珀"}, {"Jenkins", "詹金斯"}, {"Lambert", "兰伯特"}, {"Mason", "梅森"},
      {"Newton", "牛顿"}, {"Osborne", "奥斯本"}, {"Perkins", "珀金斯"}, {"Quinn", "奎因"},
      {"Russell", "拉塞尔"}, {"Sutton", "萨顿"}, {"Tucker", "塔克"}, {"Vaughan", "沃恩"},
      {"Watson", "沃森"}, {"Young", "扬"}, {"Garcia", "加西亚"}, {"Lopez", "洛佩斯"},
      {"Rossi", "罗西"}, {"Schmidt", "施密特"}, {"Weber", "韦伯"}, {"Dubois", "杜布瓦"},
      {"Petrov", "彼得罗夫"}, {"Novak", "诺瓦克"}, {"Larsen", "拉森"}, {"Jensen", "延森"},
      {"Silva", "席尔瓦"}, {"Costa", "科斯塔"}, {"Khan", "汗"}, {"Singh", "辛格"},
      {"Patel", "帕特尔"}, {"Tanaka", "田中"}, {"Suzuki", "铃木"}, {"Sato", "佐藤"},
  };
  return kTable;
}

std::span<const GivenName> chinese_families() {
  static constexpr GivenName kTable[] = {
      {"Wang", "王"}, {"Li", "李"}, {"Zhang", "张"}, {"Liu", "刘"},
      {"Chen", "陈"}, {"Yang", "杨"}, {"Zhao", "赵"}, {"Huang", "黄"},
      {"Zhou", "周"}, {"Wu", "吴"}, {"Xu", "徐"}, {"Sun", "孙"},
      {"Hu", "胡"}, {"Zhu", "朱"}, {"Gao", "高"}, {"Lin", "林"},
      {"Guo", "郭"}, {"Ma", "马"}, {"Luo", "罗"}, {"Liang", "梁"},
      {"Song", "宋"}, {"Zheng", "郑"}, {"Xie", "谢"}, {"Han", "韩"},
      {"Tang", "唐"}, {"Feng", "冯"}, {"Dong", "董"}, {"Cheng", "程"},
      {"Cao", "曹"}, {"Yuan", "袁"}, {"Deng", "邓"}, {"Fu", "傅"},
      {"Shen", "沈"}, {"Zeng", "曾"}, {"Peng", "彭"}, {"Lu", "陆"},
      {"Su", "苏"}, {"Jiang", "江"}, {"Cai", "蔡"}, {"Jia", "贾"},
      {"Ding", "丁"}, {"Wei", "魏"}, {"Xue", "薛"}, {"Ye", "叶"},
      {"Pan", "潘"}, {"Du", "杜"}, {"Dai", "戴"}, {"Xia", "夏"},
      {"Zhong", "钟"}, {"Tian", "田"}, {"Ren", "任"}, {"Fan", "范"},
      {"Fang", "方"}, {"Shi", "石"}, {"Yao", "姚"}, {"Tan", "谭"},
      {"Liao", "廖"}, {"Zou", "邹"}, {"Xiong", "熊"}, {"Jin", "金"},
      {"Hao", "郝"}, {"Kong", "孔"}, {"Bai", "白"}, {"Cui", "崔"},
      {"Kang", "康"}, {"Mao", "毛"}, {"Qiu", "邱"}, {"Qin", "秦"},
      {"Gu", "顾"}, {"Hou", "侯"}, {"Shao", "邵"}, {"Meng", "孟"},
      {"Wan", "万"}, {"Duan", "段"}, {"Qian", "钱"}, {"Yin", "尹"},
      {"Li", "黎"}, {"Yi", "易"}, {"Chang", "常"}, {"Wu", "武"},
      {"Qiao", "乔"}, {"Lai", "赖"}, {"Gong", "龚"}, {"Wen", "文"},
  };
  return kTable;
}

std::span<const GivenName> pet_names() {
  static constexpr GivenName kTable[] = {
      {"Biscuit", "饼干"}, {"Button", "纽扣"}, {"Pepper", "胡椒"}, {"Ginger", "小姜"},
      {"Snowball", "雪球"}, {"Dumpling", "饺子"}, {"Noodle", "面条"}, {"Bean", "豆豆"},
      {"Pumpkin", "南瓜"}, {"Cookie", "曲奇"}, {"Pickle", "小黄瓜"}, {"Marmalade", "橘子酱"},
      {"Toffee", "太妃糖"}, {"Muffin", "松饼"}, {"Waffles", "华夫"}, {"Mustard", "芥末"},
      {"Tofu", "豆腐"}, {"Sesame", "芝麻"}, {"Mocha", "摩卡"}, {"Coco", "可可"},
      {"Latte", "拿铁"}, {"Pudding", "布丁"}, {"Peanut", "花生"}, {"Walnut", "核桃"},
      {"Chestnut", "栗子"}, {"Mango", "芒果"}, {"Cherry", "樱桃"}, {"Olive", "橄榄"},
      {"Clover", "三叶草"}, {"Shadow", "影子"}, {"Thunder", "雷雷"}, {"Lightning", "闪电"},
      {"Comet", "彗星"}, {"Rocket", "火箭"}, {"Captain", "船长"}, {"General", "将军"},
      {"Professor", "教授"}, {"Duchess", "公爵夫人"}, {"Mittens", "手套"}, {"Socks", "袜子"},
      {"Whiskers", "胡子"}, {"Patches", "花花"}, {"Spot", "点点"}, {"Rusty", "锈锈"},
      {"Smoky", "烟烟"}, {"Sunny", "阳阳"}, {"Lucky", "来福"}, {"Happy", "乐乐"},
      {"Fluffy", "毛毛"}, {"Tiny", "小不点"}, {"Bubbles", "泡泡"}, {"Pebble", "小石子"},
      {"Acorn", "橡果"}, {"Blossom", "花朵"}, {"Maple", "枫叶"}, {"Moss", "青苔"},
      {"Willow", "柳柳"}, {"Cloud", "云朵"}, {"Misty", "雾雾"}, {"Star", "星星"},
  };
  return kTable;
}

std::span<const Noun> jobs() {
  static constexpr Noun kTable[] = {
      {"baker", "面包师", "位"}, {"doctor", "医生", "位"}, {"nurse", "护士", "位"},
      {"teacher", "老师", "位"}, {"farmer", "农夫", "位"}, {"fisherman", "渔夫", "位"},
      {"gardener", "园丁", "位"}, {"tailor", "裁缝", "位"}, {"cobbler", "鞋匠", "个"},
      {"carpenter", "木匠", "位"}, {"blacksmith", "铁匠", "位"}, {"painter", "画家", "位"},
      {"singer", "歌手", "位"}, {"dancer", "舞蹈家", "位"}, {"pianist", "钢琴家", "位"},
      {"violinist", "小提琴家", "位"}, {"poet", "诗人", "位"}, {"writer", "作家", "位"},
      {"librarian", "图书管理员", "位"}, {"postman", "邮递员", "位"}, {"policeman", "警察", "名"},
      {"firefighter", "消防员", "名"}, {"soldier", "士兵", "名"}, {"sailor", "水手", "名"},
      {"captain", "船长", "位"}, {"pilot", "飞行员", "名"}, {"driver", "司机", "位"},
      {"conductor", "列车员", "名"}, {"cook", "厨师", "位"}, {"waiter", "服务员", "名"},
      {"grocer", "杂货商", "位"}, {"butcher", "肉店老板", "位"}, {"florist", "花店老板", "位"},
      {"barber", "理发师", "位"}, {"dentist", "牙医", "位"}, {"vet", "兽医", "位"},
      {"judge", "法官", "位"}, {"lawyer", "律师", "位"}, {"clerk", "职员", "名"},
      {"banker", "银行家", "位"}, {"shopkeeper", "店主", "位"}, {"innkeeper", "客栈老板", "位"},
      {"miller", "磨坊主", "位"}, {"shepherd", "牧羊人", "位"}, {"beekeeper", "养蜂人", "位"},
      {"clockmaker", "钟表匠", "位"}, {"locksmith", "锁匠", "位"}, {"plumber", "水管工", "位"},
      {"electrician", "电工", "位"}, {"engineer", "工程师", "位"}, {"mechanic", "修理工", "名"},
      {"scientist", "科学家", "位"}, {"astronomer", "天文学家", "位"}, {"detective", "侦探", "位"},
      {"magician", "魔术师", "位"}, {"clown", "小丑", "个"}, {"acrobat", "杂技演员", "名"},
      {"actor", "演员", "名"}, {"photographer", "摄影师", "位"}, {"reporter", "记者", "名"},
      {"guide", "导游", "名"}, {"lifeguard", "救生员", "名"}, {"coach", "教练", "位"},
      {"referee", "裁判", "名"}, {"student", "学生", "名"}, {"traveller", "旅行者", "位"},
      {"neighbour", "邻居", "位"}, {"potter", "陶艺师", "位"}, {"weaver", "织布匠", "位"},
      {"umbrella maker", "制伞匠", "位"}, {"tea merchant", "茶商", "位"}, {"bookseller", "书商", "位"},
      {"lighthouse keeper", "灯塔看守人", "位"}, {"night watchman", "守夜人", "位"},
  };
  return kTable;
}

std::span<const Phrase> hobbies() {
  static constexpr Phrase kTable[] = {
      {"paint* obj:pictures", "画* obj:画"},
      {"bake* obj:bread", "烤* obj:面包"},
      {"knit* obj:scarves", "织* obj:围巾"},
      {"collect* obj:stamps", "收集* obj:邮票"},
      {"grow* obj:roses", "种* obj:玫瑰"},
      {"read* [obj amod:old books]", "读* [obj amod:旧 书]"},
      {"play* [obj det:the piano]", "弹* obj:钢琴"},
      {"play* obj:chess", "下* obj:棋"},
      {"fly* obj:kites", "放* obj:风筝"},
      {"fish* [obl in the river]", "[obl 在 河 边] 钓鱼*"},
      {"cook* [obj amod:hot soup]", "煮* obj:热汤"},
      {"write* obj:letters", "写* obj:信"},
      {"dance* [obl in the kitchen]", "[obl 在 厨房 里] 跳舞*"},
      {"sing* [obl in the bath]", "[obl 在 浴室 里] 唱歌*"},
      {"tell* obj:jokes", "讲* obj:笑话"},
      {"repair* obj:clocks", "修* obj:钟"},
      {"count* obj:clouds", "数* obj:云"},
      {"feed* [obj det:the ducks]", "喂* obj:鸭子"},
      {"climb* obj:trees", "爬* obj:树"},
      {"drink* obj:tea", "喝* obj:茶"},
      {"make* obj:dumplings", "包* obj:饺子"},
      {"ride* [obj det:a bicycle]", "骑* obj:自行车"},
      {"swim* [obl in the lake]", "[obl 在 湖 里] 游泳*"},
      {"walk* [obl in the rain]", "[obl 在 雨 里] 散步*"},
      {"look* [obl at the stars]", "看* obj:星星"},
      {"draw* obj:maps", "画* obj:地图"},
      {"plant* obj:trees", "种* obj:树"},
      {"keep* obj:bees", "养* obj:蜜蜂"},
      {"build* [obj amod:small boats]", "造* [obj amod:小 船]"},
      {"play* [obj det:the violin]", "拉* obj:小提琴"},
      {"take* obj:photographs", "拍* obj:照片"},
      {"solve* obj:riddles", "猜* obj:谜语"},
      {"eat* [obj compound:ice cream]", "吃* obj:冰淇淋"},
      {"talk* [obl to plants]", "[obl 跟 植物] 说话*"},
      {"sleep* [obl in the afternoon]", "obl:tmod:下午 睡觉*"},
      {"listen* [obl to the radio]", "听* obj:收音机"},
      {"learn* [obj amod:new words]", "学* [obj amod:新 词]"},
      {"catch* obj:butterflies", "捉* obj:蝴蝶"},
      {"visit* obj:museums", "参观* obj:博物馆"},
      {"polish* obj:shoes", "擦* obj:皮鞋"},
      {"sew* obj:buttons", "缝* obj:纽扣"},
      {"mend* obj:umbrellas", "修* obj:雨伞"},
      {"skip* obj:stones", "[obl 在 水 上] 打* obj:水漂"},
      {"carve* obj:spoons", "刻* obj:勺子"},
      {"roll* [obl case:down hills]", "[obl 从 山坡 上] 滚* compound:下来/V"},
      {"argue* [obl with parrots]", "[obl 跟 鹦鹉] 吵架*"},
      {"invent* obj:machines", "发明* obj:机器"},
      {"chase* obj:pigeons", "追* obj:鸽子"},
  };
  return kTable;
}

// clang-format on
}  // namespace qkv::world
