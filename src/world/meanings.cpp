// Words of the patterns and what they become in Chinese: lemmas, and the words of the Chinese patterns.
#include "world/meanings.h"

#include <algorithm>
#include <vector>

namespace qkv::world {
namespace {

constexpr std::string_view kMeaningWords =
    "now 现在|after 之后|after 以后|before 之前|home 家|home 回家|invite 应邀|invite 邀请|invite 请|coin 钱|how 多少|"
    "how 怎么样|how 怎么|many 多少|many 很多|much 多少|step 一步一步|never 从来|never 不会|no 没有|no 不对|not 不|not "
    "没|so 于是|"
    "so 所以|very 很|while 时候|only 只|only 只有|but 可是|but 但是|capital 首都|beside 旁边|like 像|like 喜欢|what "
    "什么|"
    "hot 热|hot 烫|even 连|even 甚至|when 时候|when 什么时候|where 哪里|next 下次|friend 朋友|friend 朋友们|everything "
    "全都|"
    "everything 什么|everything 事情|together 一起|all 一路|tea 茶|sit 坐|one 一|one 一天|leave 剩|leave 留|market "
    "市场|"
    "each 每|every 每|last 终于|last 上次|nobody 没有|nobody 人|far 远|into 进|everywhere 到处|come 来|come 回家|come "
    "赶来|"
    "way 一路|way 路|give 送|give 给|everyone 大家|everyone 人|everyone 谁|always 总是|always 一直|day 天|usual 平常|"
    "as 一样|later 以后|later 后来|over 翻|take 带|be 是|be 在|more 多|more 更|behind 后面|behind 身后|Sunday 星期天|"
    "Monday 星期一|Tuesday 星期二|Wednesday 星期三|Thursday 星期四|Friday 星期五|Saturday 星期六|want 想|want "
    "想要|three 三|"
    "garden 花园|go 不见|go 去|go 回|laugh 笑|class 大家|follow 跟|cat 猫|ever 过|table 桌子|under 下|black 黑|good 好|"
    "sigh 叹|hurry 匆匆|write 写|nothing 什么|chance 碰巧|anyway 反正|buy 买|end 最后|delay 马上|smile 笑|purpose 故意|"
    "time 下次|wrong 错|window 窗|window 窗户|out 外|quickly 马上|than 比|right 对|carefully 仔细|carefully 小心|"
    "evening 晚上|this 这|become 当|curtain 窗帘|rain 雨|loudly 响|finger 手指|cup 杯|cup 茶|cup 杯子|see 看见|see 看|"
    "full 饱|full 满满|then 后来|then 然后|listen 听|fog 雾|careful 小心|again 又|happy 高兴|happy 快乐|village 村子|"
    "sorry 对不起|sorry 道歉|count 算|count 数|afternoon 下午|say 说|mystery 谜案|carpet 地毯|carpet 飞毯|two 两|soon "
    "很快|"
    "since 从|onto 上|arm 手|visit 看望|visit 参观|first 第一|first 先|floor 地板|minute 分钟|minute 一会儿|morning "
    "早上|"
    "morning 早晨|star 星星|luckily 幸好|door 门|I 我|easy 容易|almost 差|today 今天|bring 带|believe 相信|another 又|"
    "sky 天|shake 晃|find 找到|birthday 生日|quiet 安静|although 虽然|you 你|love 喜欢|walk 走|walk 散步|favourite "
    "宝贝|"
    "because 因为|thing 东西|good 好看|wave 挥|spill 翻|bag 包|need 需要|rise 升|use 用|plan 打算|week 星期|belly 肚子|"
    "whole 整个|sleep 睡觉|sleep 睡着|sleep 睡|radio 收音机|parrot 鹦鹉|lesson 下课|begin 起|still 还|dance 跳|dance "
    "跳舞|"
    "around 围着|already 已经|tomorrow 明天|course 当然|return 回来|control 正常|complain 意见|complain 抱怨|cream "
    "奶油|"
    "river 河|much 一共|asleep 睡觉|kitchen 厨房|wind 大风|too 太|too 也|run 跑|strong 大风|show 看|dream 做梦|arrive "
    "到|"
    "tree 树|kiss 亲|late 迟到|lose 迷路|mouth 嘴里|mouth 嘴|yes 是啊|taste 尝|sun 太阳|sure 知道|nose 鼻子|hide 藏|"
    "country 国家|breakfast 早饭|famous 传|slowly 慢慢|slowly 慢行|gladly 欣然|well 香|weather 天气|kite 风筝|twice 两|"
    "story 故事|try 喝|try 试|play 拉|play 弹|play 下|ghost 鬼|finish 完|politely 客气|moon 月亮|happily 开心|"
    "bravely 勇敢|patiently 耐心|lunch 午饭|proudly 骄傲|plant 植物|plant 种|silently 默默|hill 山坡|chess 棋|map 地图|"
    "cloud 云|quietly 静静|night 晚上|night 夜晚|why 为什么|big 大|riddle 谜语|violin 小提琴|umbrella 雨伞|dumpling "
    "饺子|"
    "bread 面包|lake 湖|spoon 勺子|ill 病|calmly 平静|suddenly 忽然|piano 钢琴|stove 炉子|know 知道|ceiling "
    "天花板|fish 鱼|"
    "fish 钓鱼|secretly 悄悄|joke 笑话|button 纽扣|small 小|bath 浴室|afraid 害怕|picture 画|clock 钟|old 旧|book 书|"
    "letter 信|butterfly 蝴蝶|pigeon 鸽子|please 请|bicycle 自行车|soup 热汤|soup 汤|scarf 围巾|off 从|supper "
    "晚饭|boat 船|"
    "shoe 皮鞋|machine 机器|coffee 咖啡|ask 问|solve 猜|hour 小时|weigh 重|alone 光|word 词|rose 玫瑰|or 不然|new 新|"
    "photograph 照片|museum 博物馆|storm 暴风雨|usually 平时|sunrise 日出|sunset 日落|bee 蜜蜂|autumn 秋天|spring 春天|"
    "summer 夏天|winter 冬天|light 亮|here 这里|there 那里|sign 牌子|school 上学|noon 中午|midnight 半夜|ride 骑|roll "
    "滚|"
    "hide 躲|neighbour 隔壁|live 住|shout 喊|call 喊|follow 带|talk 说话|stamp 邮票|speak 理|sew 缝|cook 煮|bake "
    "烤|tell 讲|tell 告诉|make 包|polish 擦|knit 织|catch 捉|"
    "collect 收集|climb 爬|argue 吵架|carve 刻|draw 画|paint 画|fly 放|chase 追|repair 修|mend 修|swim 游泳|sing 唱歌|"
    "sing 唱|grow 种|keep 养|drink 喝|eat 吃|read 读|look 看|learn 学|invent 发明|build 造|feed 喂|wall 墙|through 穿|"
    "pity 可惜|holiday 假期|dinner 晚饭|help 帮忙|help 帮|head 头|hand 手|eye 眼睛|breath 呼吸|lip 嘴唇|throat 嗓子|"
    "voice 声音|forehead 额头|foot 脚|coat 大衣|hat 帽子|scratch 挠|raise 举|close 闭|rub 揉|clap 拍|bite 咬|clear 清|"
    "lower 压|open 张|open 打开|wipe 擦|tap 跺|wrinkle 皱|cross 抱|drop 掉|wash 洗|code 密码|note 纸条|repeat 重复|"
    "whisper 问|whisper 小声|stage 舞台|front 前面|phone 电话|jar 罐子|lend 借|thank 感谢|comfort 安慰|envy 羡慕|avoid "
    "躲|"
    "wake 叫醒|snore 打呼噜|basket 篮子|tired 累|shy 害羞|angry 生气|sad 难过|curious 好奇|lonely 寂寞|polite "
    "有礼貌|lost 迷路|"
    "answer 回答|question 问题|mother 妈妈|father 爸爸|child 孩子|water 水|fire 火|snow 雪|road 路|street 街|shop 商店|"
    "teacher 老师|student 学生|that 那|it 它|he 他|she 她|they 他们|we 我们|and 和|with 跟|with 和|for 给|from 从|in "
    "里|"
    "in 在|on 上|on 在|at 在|about 关于|until 直到|without 没|during 时|can 能|could 能|will 会|would 会|must 必须|"
    "have 有|do 做|make 做|put 放|stand 站|wait 等|think 想|remember 记得|forget 忘记|promise 答应|apologise 道歉|"
    "hear 听见|smell 闻|touch 摸|push 推|pull 拉|jump 跳|fall 掉|break 打破|fix 修|pay 付|cost 花|sell 卖|send 送|"
    "meet 遇见|greet 问候|praise 表扬|recognise 认出|decide 决定|agree 同意|refuse 拒绝|happen 发生|turn 转|stop 停|"
    "start 开始|knock 敲|yawn 哈欠|sneeze 喷嚏|whistle 口哨|nod 点|bow 鞠|invite 应|carry 进位|steps 一步一步|by "
    "一步一步|by 应|"
    "with 带|market 集市|cup 一杯|good 高高兴兴|door 门口|nine 九|eight 八|seven 七|six 六|five 五|four 四|ten 十|nine "
    "九点钟|"
    "eight 八点钟|seven 七点钟|six 六点钟|five 五点钟|four 四点钟|ten 十点钟|three 三点钟|two 两点钟|o'clock "
    "九点钟|o'clock 八点钟|"
    "o'clock 七点钟|o'clock 六点钟|o'clock 五点钟|o'clock 四点钟|o'clock 十点钟|o'clock 三点钟|o'clock 两点钟|Mr "
    "先生|Mrs 太太|"
    "Miss 小姐|Ms 女士|Aunt 阿姨|Uncle 叔叔|Grandma 奶奶|Grandpa 爷爷|young 年轻|chrysanthemum 菊花茶|who 谁|have 手里|"
    "have 归|invited 请|bad 倒霉|unlucky 倒霉|ago 前|plus 加|minus 减|times 乘以|equal 等于|remainder 余|divide 除以|"
    "half 一半|total 一共|altogether 一共|left 还剩";

}  // namespace

std::span<const Meaning> meanings() {
  static const std::vector<Meaning> all = [] {
    std::vector<Meaning> found;
    for (size_t begin = 0, end; begin < kMeaningWords.size(); begin = end + 1) {
      end = std::min(kMeaningWords.find('|', begin), kMeaningWords.size());
      const std::string_view pair = kMeaningWords.substr(begin, end - begin);
      const size_t space = pair.find(' ');
      found.push_back({.en = pair.substr(0, space), .zh = pair.substr(space + 1)});
    }
    return found;
  }();
  return all;
}

}  // namespace qkv::world
