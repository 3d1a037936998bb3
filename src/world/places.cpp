// Word lists: countries and capitals, rooms, spots in them, places in a town, vehicles, sights.
#include "world/lexicon.h"

namespace qkv::world {

// clang-format off
std::span<const Country> countries() {
  static constexpr Country kTable[] = {
      {"China", "中国", "Beijing", "北京"}, {"Japan", "日本", "Tokyo", "东京"},
      {"France", "法国", "Paris", "巴黎"}, {"Germany", "德国", "Berlin", "柏林"},
      {"Italy", "意大利", "Rome", "罗马"}, {"Spain", "西班牙", "Madrid", "马德里"},
      {"Portugal", "葡萄牙", "Lisbon", "里斯本"}, {"Greece", "希腊", "Athens", "雅典"},
      {"Turkey", "土耳其", "Ankara", "安卡拉"}, {"Egypt", "埃及", "Cairo", "开罗"},
      {"Kenya", "肯尼亚", "Nairobi", "内罗毕"}, {"Ethiopia", "埃塞俄比亚", "Addis Ababa", "亚的斯亚贝巴"},
      {"Nigeria", "尼日利亚", "Abuja", "阿布贾"}, {"Ghana", "加纳", "Accra", "阿克拉"},
      {"Morocco", "摩洛哥", "Rabat", "拉巴特"}, {"Algeria", "阿尔及利亚", "Algiers", "阿尔及尔"},
      {"Libya", "利比亚", "Tripoli", "的黎波里"}, {"Senegal", "塞内加尔", "Dakar", "达喀尔"},
      {"Mali", "马里", "Bamako", "巴马科"}, {"Uganda", "乌干达", "Kampala", "坎帕拉"},
      {"Rwanda", "卢旺达", "Kigali", "基加利"}, {"Zambia", "赞比亚", "Lusaka", "卢萨卡"},
      {"Zimbabwe", "津巴布韦", "Harare", "哈拉雷"}, {"Namibia", "纳米比亚", "Windhoek", "温得和克"},
      {"Angola", "安哥拉", "Luanda", "罗安达"}, {"Mozambique", "莫桑比克", "Maputo", "马普托"},
      {"Madagascar", "马达加斯加", "Antananarivo", "塔那那利佛"}, {"Somalia", "索马里", "Mogadishu", "摩加迪沙"},
      {"Sudan", "苏丹", "Khartoum", "喀土穆"}, {"Cameroon", "喀麦隆", "Yaounde", "雅温得"},
      {"Gabon", "加蓬", "Libreville", "利伯维尔"}, {"Botswana", "博茨瓦纳", "Gaborone", "哈博罗内"},
      {"Malawi", "马拉维", "Lilongwe", "利隆圭"}, {"Liberia", "利比里亚", "Monrovia", "蒙罗维亚"},
      {"Sierra Leone", "塞拉利昂", "Freetown", "弗里敦"}, {"Niger", "尼日尔", "Niamey", "尼亚美"},
      {"Mauritania", "毛里塔尼亚", "Nouakchott", "努瓦克肖特"}, {"England", "英格兰", "London", "伦敦"},
      {"Scotland", "苏格兰", "Edinburgh", "爱丁堡"}, {"Wales", "威尔士", "Cardiff", "加的夫"},
      {"Ireland", "爱尔兰", "Dublin", "都柏林"}, {"Iceland", "冰岛", "Reykjavik", "雷克雅未克"},
      {"Norway", "挪威", "Oslo", "奥斯陆"}, {"Sweden", "瑞典", "Stockholm", "斯德哥尔摩"},
      {"Finland", "芬兰", "Helsinki", "赫尔辛基"}, {"Denmark", "丹麦", "Copenhagen", "哥本哈根"},
      {"Netherlands", "荷兰", "Amsterdam", "阿姆斯特丹", true}, {"Belgium", "比利时", "Brussels", "布鲁塞尔"},
      {"Switzerland", "瑞士", "Bern", "伯尔尼"}, {"Austria", "奥地利", "Vienna", "维也纳"},
      {"Hungary", "匈牙利", "Budapest", "布达佩斯"}, {"Poland", "波兰", "Warsaw", "华沙"},
      {"Czech Republic", "捷克", "Prague", "布拉格", true}, {"Slovakia", "斯洛伐克", "Bratislava", "布拉迪斯拉发"},
      {"Slovenia", "斯洛文尼亚", "Ljubljana", "卢布尔雅那"}, {"Croatia", "克罗地亚", "Zagreb", "萨格勒布"},
      {"Serbia", "塞尔维亚", "Belgrade", "贝尔格莱德"}, {"Bulgaria", "保加利亚", "Sofia", "索非亚"},
      {"Romania", "罗马尼亚", "Bucharest", "布加勒斯特"}, {"Albania", "阿尔巴尼亚", "Tirana", "地拉那"},
      {"Ukraine", "乌克兰", "Kyiv", "基辅"}, {"Belarus", "白俄罗斯", "Minsk", "明斯克"},
      {"Lithuania", "立陶宛", "Vilnius", "维尔纽斯"}, {"Latvia", "拉脱维亚", "Riga", "里加"},
      {"Estonia", "爱沙尼亚", "Tallinn", "塔林"}, {"Russia", "俄罗斯", "Moscow", "莫斯科"},
      {"Georgia", "格鲁吉亚", "Tbilisi", "第比利斯"}, {"Armenia", "亚美尼亚", "Yerevan", "埃里温"},
      {"Azerbaijan", "阿塞拜疆", "Baku", "巴库"}, {"Malta", "马耳他", "Valletta", "瓦莱塔"},
      {"Cyprus", "塞浦路斯", "Nicosia", "尼科西亚"}, {"Moldova", "摩尔多瓦", "Chisinau", "基希讷乌"},
      {"Iran", "伊朗", "Tehran", "德黑兰"}, {"Iraq", "伊拉克", "Baghdad", "巴格达"},
      {"Syria", "叙利亚", "Damascus", "大马士革"}, {"Lebanon", "黎巴嫩", "Beirut", "贝鲁特"},
      {"Jordan", "约旦", "Amman", "安曼"}, {"Saudi Arabia", "沙特阿拉伯", "Riyadh", "利雅得"},
      {"Oman", "阿曼", "Muscat", "马斯喀特"}, {"Qatar", "卡塔尔", "Doha", "多哈"},
      {"Bahrain", "巴林", "Manama", "麦纳麦"}, {"Yemen", "也门", "Sanaa", "萨那"},
      {"Afghanistan", "阿富汗", "Kabul", "喀布尔"}, {"Pakistan", "巴基斯坦", "Islamabad", "伊斯兰堡"},
      {"India", "印度", "New Delhi", "新德里"}, {"Nepal", "尼泊尔", "Kathmandu", "加德满都"},
      {"Bhutan", "不丹", "Thimphu", "廷布"}, {"Bangladesh", "孟加拉国", "Dhaka", "达卡"},
      {"Myanmar", "缅甸", "Naypyidaw", "内比都"}, {"Thailand", "泰国", "Bangkok", "曼谷"},
      {"Laos", "老挝", "Vientiane", "万象"}, {"Cambodia", "柬埔寨", "Phnom Penh", "金边"},
      {"Vietnam", "越南", "Hanoi", "河内"}, {"Malaysia", "马来西亚", "Kuala Lumpur", "吉隆坡"},
      {"Philippines", "菲律宾", "Manila", "马尼拉", true}, {"Mongolia", "蒙古国", "Ulaanbaatar", "乌兰巴托"},
      {"South Korea", "韩国", "Seoul", "首尔"}, {"North Korea", "朝鲜", "Pyongyang", "平壤"},
      {"Kazakhstan", "哈萨克斯坦", "Astana", "阿斯塔纳"}, {"Uzbekistan", "乌兹别克斯坦", "Tashkent", "塔什干"},
      {"Turkmenistan", "土库曼斯坦", "Ashgabat", "阿什哈巴德"}, {"Kyrgyzstan", "吉尔吉斯斯坦", "Bishkek", "比什凯克"},
      {"Tajikistan", "塔吉克斯坦", "Dushanbe", "杜尚别"}, {"Australia", "澳大利亚", "Canberra", "堪培拉"},
      {"New Zealand", "新西兰", "Wellington", "惠灵顿"}, {"Fiji", "斐济", "Suva", "苏瓦"},
      {"Samoa", "萨摩亚", "Apia", "阿皮亚"}, {"Canada", "加拿大", "Ottawa", "渥太华"},
      {"United States", "美国", "Washington", "华盛顿", true}, {"Cuba", "古巴", "Havana", "哈瓦那"},
      {"Jamaica", "牙买加", "Kingston", "金斯敦"}, {"Haiti", "海地", "Port-au-Prince", "太子港"},
      {"Bahamas", "巴哈马", "Nassau", "拿骚", true}, {"Honduras", "洪都拉斯", "Tegucigalpa", "特古西加尔巴"},
      {"Nicaragua", "尼加拉瓜", "Managua", "马那瓜"}, {"Costa Rica", "哥斯达黎加", "San Jose", "圣何塞"},
      {"Colombia", "哥伦比亚", "Bogota", "波哥大"}, {"Venezuela", "委内瑞拉", "Caracas", "加拉加斯"},
      {"Ecuador", "厄瓜多尔", "Quito", "基多"}, {"Peru", "秘鲁", "Lima", "利马"},
      {"Chile", "智利", "Santiago", "圣地亚哥"}, {"Argentina", "阿根廷", "Buenos Aires", "布宜诺斯艾利斯"},
      {"Uruguay", "乌拉圭", "Montevideo", "蒙得维的亚"}, {"Paraguay", "巴拉圭", "Asuncion", "亚松森"},
      {"Brazil", "巴西", "Brasilia", "巴西利亚"}, {"Guyana", "圭亚那", "Georgetown", "乔治敦"},
      {"Suriname", "苏里南", "Paramaribo", "帕拉马里博"},
  };
  return kTable;
}

std::span<const Spot> rooms() {
  static constexpr Spot kTable[] = {
      {{"kitchen", "厨房", "间"}, "in", "里"}, {{"bedroom", "卧室", "间"}, "in", "里"},
      {{"living room", "客厅", "间"}, "in", "里"}, {{"dining room", "餐厅", "间"}, "in", "里"},
      {{"study", "书房", "间"}, "in", "里"}, {{"attic", "阁楼", "间"}, "in", "里"},
      {{"cellar", "地窖", "个"}, "in", "里"}, {{"workshop", "工作间", "间"}, "in", "里"},
      {{"laundry room", "洗衣房", "间"}, "in", "里"}, {{"playroom", "游戏室", "间"}, "in", "里"},
      {{"guest room", "客房", "间"}, "in", "里"}, {{"music room", "琴房", "间"}, "in", "里"},
      {{"tower room", "塔楼", "间"}, "in", "里"}, {{"sunroom", "阳光房", "间"}, "in", "里"},
  };
  return kTable;
}

std::span<const Spot> spots() {
  static constexpr Spot kTable[] = {
      {{"table", "桌子", "张"}, "on", "上"}, {{"table", "桌子", "张"}, "under", "下面"},
      {{"chair", "椅子", "把"}, "on", "上"}, {{"chair", "椅子", "把"}, "under", "下面"},
      {{"bed", "床", "张"}, "under", "下面"}, {{"bed", "床", "张"}, "on", "上"},
      {{"sofa", "沙发", "张"}, "on", "上"}, {{"sofa", "沙发", "张"}, "behind", "后面"},
      {{"shelf", "架子", "个"}, "on", "上"}, {{"bookshelf", "书架", "个"}, "on", "上"},
      {{"cupboard", "橱柜", "个"}, "in", "里"}, {{"wardrobe", "衣柜", "个"}, "in", "里"},
      {{"chest", "大木箱", "个"}, "in", "里"}, {{"basket", "篮子", "个"}, "in", "里"},
      {{"door", "门", "扇"}, "behind", "后面"}, {{"curtain", "窗帘", "块"}, "behind", "后面"},
      {{"windowsill", "窗台", "个"}, "on", "上"}, {{"piano", "钢琴", "架"}, "on", "上"},
      {{"piano", "钢琴", "架"}, "behind", "后面"}, {{"desk", "书桌", "张"}, "on", "上"},
      {{"desk", "书桌", "张"}, "in", "里"}, {{"stove", "炉子", "个"}, "beside", "旁边"},
      {{"fireplace", "壁炉", "个"}, "beside", "旁边"}, {{"bench", "长凳", "条"}, "under", "下面"},
      {{"bench", "长凳", "条"}, "on", "上"}, {{"stairs", "楼梯", "段"}, "under", "下面"},
      {{"laundry basket", "洗衣篮", "个"}, "in", "里"}, {{"toy box", "玩具箱", "个"}, "in", "里"},
      {{"armchair", "扶手椅", "把"}, "on", "上"}, {{"stool", "凳子", "个"}, "under", "下面"},
      {{"rocking chair", "摇椅", "把"}, "on", "上"}, {{"grandfather clock", "落地钟", "座"}, "behind", "后面"},
      {{"fish tank", "鱼缸", "个"}, "beside", "旁边"},
  };
  return kTable;
}

std::span<const Spot> nooks() {
  static constexpr Spot kTable[] = {
      {{"drawer", "抽屉", "个"}, "in", "里"}, {{"carpet", "地毯", "块"}, "under", "下面"},
      {{"doormat", "门垫", "块"}, "under", "下面"}, {{"flowerpot", "花盆", "个"}, "behind", "后面"},
      {{"flowerpot", "花盆", "个"}, "under", "下面"}, {{"big vase", "大花瓶", "个"}, "in", "里"},
      {{"bread bin", "面包箱", "个"}, "in", "里"}, {{"biscuit tin", "饼干盒", "个"}, "in", "里"},
      {{"coat pocket", "大衣口袋", "个"}, "in", "里"}, {{"umbrella stand", "伞架", "个"}, "in", "里"},
      {{"hat box", "帽盒", "个"}, "in", "里"}, {{"mattress", "床垫", "张"}, "under", "下面"},
      {{"sewing basket", "针线篮", "个"}, "in", "里"}, {{"jewel box", "首饰盒", "个"}, "in", "里"},
      {{"pencil case", "铅笔盒", "个"}, "in", "里"}, {{"sugar bowl", "糖罐", "个"}, "in", "里"},
      {{"teapot", "茶壶", "把"}, "in", "里"}, {{"left shoe", "左脚鞋子", "只"}, "in", "里"},
      {{"pillow", "枕头", "个"}, "under", "下面"}, {{"napkin", "餐巾", "块"}, "under", "下面"},
      {{"fruit bowl", "果盘", "个"}, "in", "里"}, {{"old dictionary", "旧词典", "本"}, "behind", "后面"},
      {{"cookie jar", "饼干罐", "个"}, "in", "里"}, {{"glove box", "手套箱", "个"}, "in", "里"},
      {{"medicine chest", "药箱", "个"}, "in", "里"},
  };
  return kTable;
}

std::span<const Spot> shops() {
  static constexpr Spot kTable[] = {
      {{"market", "市场", "个"}, "at", "上"}, {{"bookshop", "书店", "家"}, "in", "里"},
      {{"toy shop", "玩具店", "家"}, "in", "里"}, {{"antique shop", "古董店", "家"}, "in", "里"},
      {{"department store", "百货商店", "家"}, "in", "里"}, {{"flea market", "跳蚤市场", "个"}, "at", "上"},
      {{"gift shop", "礼品店", "家"}, "in", "里"}, {{"night market", "夜市", "个"}, "at", "上"},
      {{"village shop", "村里小店", "家"}, "in", "里"}, {{"old harbour market", "老港口市场", "个"}, "at", "上"},
      {{"corner shop", "街角小店", "家"}, "in", "里"}, {{"junk shop", "旧货店", "家"}, "in", "里"},
      {{"station kiosk", "车站小卖部", "家"}, "at", "里"}, {{"museum shop", "博物馆商店", "家"}, "in", "里"},
      {{"craft market", "手工市场", "个"}, "at", "上"},
  };
  return kTable;
}

std::span<const Spot> places() {
  static constexpr Spot kTable[] = {
      {{"market", "市场", "个"}, "at", "上"}, {{"park", "公园", "个"}, "in", "里"},
      {{"station", "车站", "个"}, "at", "里"}, {{"library", "图书馆", "座"}, "in", "里"},
      {{"school", "学校", "所"}, "at", "里"}, {{"bakery", "面包店", "家"}, "in", "里"},
      {{"bookshop", "书店", "家"}, "in", "里"}, {{"post office", "邮局", "家"}, "at", "里"},
      {{"hospital", "医院", "家"}, "at", "里"}, {{"bank", "银行", "家"}, "at", "里"},
      {{"museum", "博物馆", "座"}, "in", "里"}, {{"theatre", "剧院", "座"}, "at", "里"},
      {{"cinema", "电影院", "家"}, "at", "里"}, {{"restaurant", "饭馆", "家"}, "in", "里"},
      {{"tea house", "茶馆", "家"}, "in", "里"}, {{"coffee house", "咖啡馆", "家"}, "in", "里"},
      {{"inn", "客栈", "家"}, "at", "里"}, {{"harbour", "港口", "个"}, "at", "里"},
      {{"beach", "海滩", "片"}, "on", "上"}, {{"river bank", "河岸", "段"}, "on", "上"},
      {{"lake", "湖", "个"}, "at", "边"}, {{"bridge", "桥", "座"}, "on", "上"},
      {{"forest", "森林", "片"}, "in", "里"}, {{"farm", "农场", "个"}, "on", "上"},
      {{"orchard", "果园", "个"}, "in", "里"}, {{"zoo", "动物园", "个"}, "at", "里"},
      {{"swimming pool", "游泳池", "个"}, "at", "边"}, {{"bus stop", "公共汽车站", "个"}, "at", "边"},
      {{"airport", "机场", "个"}, "at", "里"}, {{"town hall", "市政厅", "座"}, "at", "里"},
      {{"square", "广场", "个"}, "on", "上"}, {{"flower shop", "花店", "家"}, "in", "里"},
      {{"toy shop", "玩具店", "家"}, "in", "里"}, {{"shoe shop", "鞋店", "家"}, "in", "里"},
      {{"fish market", "鱼市", "个"}, "at", "上"}, {{"playground", "操场", "个"}, "on", "上"},
      {{"vegetable garden", "菜园", "个"}, "in", "里"}, {{"mill", "磨坊", "座"}, "at", "里"},
      {{"lighthouse", "灯塔", "座"}, "at", "里"}, {{"barber shop", "理发店", "家"}, "in", "里"},
      {{"pharmacy", "药店", "家"}, "in", "里"}, {{"temple", "庙", "座"}, "in", "里"},
      {{"old well", "古井", "口"}, "at", "边"}, {{"noodle shop", "面馆", "家"}, "in", "里"},
      {{"night market", "夜市", "个"}, "at", "上"}, {{"stable", "马棚", "个"}, "in", "里"},
      {{"barn", "谷仓", "个"}, "in", "里"}, {{"office", "办公室", "间"}, "in", "里"},
      {{"greenhouse", "温室", "间"}, "in", "里"}, {{"hilltop", "山顶", "个"}, "on", "上"},
  };
  return kTable;
}

std::span<const Noun> vehicles() {
  static constexpr Noun kTable[] = {
      {"plane", "飞机", "架"}, {"small plane", "小飞机", "架"}, {"seaplane", "水上飞机", "架"},
      {"balloon", "热气球", "个"}, {"airship", "飞艇", "艘"}, {"helicopter", "直升机", "架"},
      {"night plane", "夜班飞机", "架"}, {"propeller plane", "螺旋桨飞机", "架"}, {"flying carpet", "飞毯", "块"},
      {"glider", "滑翔机", "架"}, {"jet", "喷气机", "架"}, {"mail plane", "邮政飞机", "架"},
  };
  return kTable;
}

std::span<const Noun> sights() {
  static constexpr Noun kTable[] = {
      {"aqueduct", "水渠", "条"}, {"art gallery", "美术馆", "座"}, {"bell tower", "钟塔", "座"},
      {"canal", "运河", "条"}, {"concert hall", "音乐厅", "座"}, {"covered bazaar", "大巴扎", "个"},
      {"dragon gate", "龙门", "座"}, {"drum tower", "鼓楼", "座"}, {"fish market", "鱼市场", "个"},
      {"fortress", "要塞", "座"}, {"gate", "城门", "座"}, {"hot spring", "温泉", "个"},
      {"ice rink", "溜冰场", "个"}, {"jazz club", "爵士俱乐部", "家"}, {"monastery", "修道院", "座"},
      {"mosque", "清真寺", "座"}, {"observatory", "天文台", "座"}, {"pagoda", "宝塔", "座"},
      {"planetarium", "天文馆", "座"}, {"puppet museum", "木偶博物馆", "座"}, {"royal park", "皇家公园", "个"},
      {"ruin", "遗址", "处"}, {"sculpture park", "雕塑公园", "个"}, {"sea wall", "海堤", "道"},
      {"spice market", "香料市场", "个"}, {"stadium", "体育场", "座"}, {"stone arch", "石拱门", "座"},
      {"sundial", "日晷", "座"}, {"tea garden", "茶园", "个"}, {"train museum", "火车博物馆", "座"},
      {"university", "大学", "所"}, {"water mill", "水磨坊", "座"}, {"wishing well", "许愿井", "口"},
      {"bridge", "桥", "座"}, {"tower", "塔", "座"}, {"palace", "宫殿", "座"},
      {"castle", "城堡", "座"}, {"temple", "庙", "座"}, {"cathedral", "大教堂", "座"},
      {"fountain", "喷泉", "座"}, {"statue", "雕像", "座"}, {"square", "广场", "个"},
      {"night market", "夜市", "个"}, {"harbour", "港口", "个"}, {"opera house", "歌剧院", "座"},
      {"botanical garden", "植物园", "个"}, {"zoo", "动物园", "个"}, {"museum", "博物馆", "座"},
      {"old library", "老图书馆", "座"}, {"clock tower", "钟楼", "座"}, {"flower market", "花市", "个"},
      {"puppet theatre", "木偶剧院", "座"}, {"lighthouse", "灯塔", "座"}, {"city wall", "城墙", "段"},
      {"windmill", "风车磨坊", "座"}, {"waterfall", "瀑布", "道"}, {"aquarium", "水族馆", "座"},
      {"toy museum", "玩具博物馆", "座"},
  };
  return kTable;
}

// clang-format on
}  // namespace qkv::world
