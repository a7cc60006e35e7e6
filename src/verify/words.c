/* The lists. English only: the words of another language are open words, and count as units where they end in s. */
#include "verify/words.h"

#include <string.h>

enum { LONGEST_WORD = 24 };

/* Each list begins and ends with a blank, so that " word " is found in it as a whole. */
static const struct {
    unsigned class;
    const char *words;
} LISTS[] = {
    /* or .. uncertain are the reference rules' */
    {RRL_WORD_DOUBT,
     " or between not wrong incorrect maybe uncertain nor neither never cannot perhaps either versus vs no none"
     " nothing anything but false untrue invalid impossible mistaken mistake incorrectly wrongly doubt doubts"
     " doubtful unlikely hopefully unsure unclear guess guessing possibly probably presumably supposedly might may if"
     " unless whether ignore disregard nobody nowhere hardly barely scarcely isnt arent wasnt werent doesnt dont didnt"
     " hasnt havent hadnt wouldnt couldnt shouldnt cant aint "},
    {RRL_WORD_UNREAL,
     " almost nearly wish wishes wished hope hopes hoped suppose supposing assume assumes assumed assuming pretend"
     " pretending imagine rarely seldom few fewest thought guessed attempt denied denies deny ruled formerly let"
     " let's "},
    {RRL_WORD_MONEY,
     " usd eur gbp jpy cad aud inr cny chf rs dollar dollars euro euros rupees cost costs price priced fee pay pays"
     " paid earn earns earned spend spends spent salary income"
     " revenue revenues profit budget wage bill worth population raised sold sales turnover "},
    {RRL_WORD_SCALE,
     " hundred hundreds thousand thousands million millions billion billions trillion trillions quadrillion dozen"
     " dozens lakh lakhs lac lacs crore crores myriad myriads mil mio mln mrd tsd thou mn bn tn kilo mega giga tera"
     " milli micro nano permille mille binary octal hex hexadecimal ternary "},
    {RRL_WORD_OPERATOR,
     " minus negative plus half pi squared cubed cube root roots sqrt cbrt log logarithm ln lg exp sine sin cosine"
     " cos tangent tan factorial twice thrice double doubled triple tripled quadruple quadrupled halved quarter"
     " inverse reciprocal opposite negation multiplied divided divisible multiple multiples factor factors divisor"
     " divisors power powers exponent modulo mod modulus gcd lcm base subtract subtracting subtracted successor"
     " predecessor multiply multiplies multiplying divide divides dividing computed calculated obtained derived "},
    {RRL_WORD_NOT_BEFORE,
     " square times than least most over under above below beneath beyond past within without until till before"
     " after since near close closer closest next prior exceed exceeds exceeded"
     " exceeding surpass surpasses precede precedes follow follows exclude excludes excluded except"
     " excluding deny denies reject rejects rejected refuse avoid forget disagree add adding tops top limit maximum"
     " minimum max min and per off from against besides beside via unlike like as outside inside toward towards"
     " approaching approaches through absolute third fourth fifth opposed contrary compared comparable unequal page"
     " line row column step equation chapter option question example "},
    {RRL_WORD_NOT_BEHIND,
     " least most maximum minimum max tops upward upwards downward downwards onward onwards ish odd etc"
     " something bit below beneath under halves thirds quarters fourths fifths sixths sevenths eighths ninths tenths"
     " elevenths twelfths thirteenths fifteenths sixteenths twentieths hundredths thousandths millionths"
     " billionths score gross grand reverse reversed backwards repeat repeats repeated repeating recur recurs"
     " recurring periodic thought error forgot bound another "},
    {RRL_WORD_STATES,
     " is are was were be been equals has have had totals that's it's there's "},
    {RRL_WORD_THROUGH,
     " the a an exactly only just about approx approximately roughly around some precisely still now also then already"
     " currently therefore thus so hence all these those his her its their our my your this that another other"
     " extra additional remaining altogether overall "},
    {RRL_WORD_NEAR,
     " for at by to in on with of him them us me you it he she they we i there each every worth equal equivalent"
     " will can could would should must more left about going able sold bought paid made got kept lost spent sent"
     " held won run read done drunk caught taught found brought built met fed led cut put set hit lent told said"
     " gone seen sung swum begun what which simply integer fraction decimal "},
    {RRL_WORD_MEASURE,
     " total totals sum amount cost costs price value number count result answer average mean median mode profit"
     " loss income revenue salary wage bill fee tip tax discount change raise increase decrease score grade age"
     " distance length width height depth area volume perimeter weight mass speed rate pace temperature time"
     " duration balance savings budget difference remainder group team class family set consists consist consisting"
     " composed made population capacity yield gain reward payment deposit surplus rent batch bag box pack packet"
     " lifespan period term collection crowd "},
    {RRL_WORD_FOLLOWS,
     " in at on of for from with by per each every a an as left remaining remain remains total altogether overall"
     " together combined more fewer less extra additional already again today tomorrow yesterday tonight now daily"
     " weekly monthly yearly annually hourly apiece long tall wide high deep thick old away ahead apart later"
     " earlier ago so because when while after before during which that who where there off out then too also only"
     " exactly this worth longer older taller higher bigger larger smaller shorter younger heavier lighter faster"
     " slower farther cheaper leftover above back "},
    {RRL_WORD_UNIT,
     /* what is counted without an s */
     " people men women children feet teeth geese mice oxen fish sheep deer moose cattle bacteria dice aircraft"
     " series species offspring police poultry salmon trout shrimp squid cacti fungi data o'clock am pm fruit candy"
     " money profit change interest tax tip"
     /* units, and what they are called for short */
     " percent pct degree dollar cent euro pound penny yen yuan won rand baht rupee peso usd eur gbp jpy cad aud"
     " inr cny second minute hour day week month year decade century sec min hr hrs ms mile foot inch yard meter"
     " metre kilometer kilometre centimeter centimetre millimeter millimetre mi ft yd km cm mm nm gram kilogram"
     " ounce ton tonne mg kg lb lbs oz liter litre milliliter millilitre gallon quart pint cup tablespoon teaspoon"
     " gal qt pt tbsp tsp ml cl dl sq acre hectare ha celsius fahrenheit kelvin mph kph kmh mpg fps rpm wpm bpm"
     " watt kilowatt volt ampere joule newton kw mw kwh hz khz mhz ghz kb mb gb tb byte point page piece person "},
    {RRL_WORD_NO_NOUN,
     " is was has does this its his hers yes as us thus plus minus unless perhaps besides always sometimes equals"
     " exceeds divides means makes gives seems looks sounds feels appears works fails misses becomes needs lies"
     " times contradicts disagrees agrees conflicts violates overshoots undershoots lacks differs ignores proves"
     " implies includes excludes contains "},
    {RRL_WORD_NUMBER,
     " zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen"
     " seventeen eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety twos threes fours fives"
     " sixes sevens eights nines tens zeros zeroes "},
};

static uint32_t lower(uint32_t cp) {
    return cp >= 'A' && cp <= 'Z' ? cp + 32 : cp;
}

bool rrl_word_is(const uint32_t *p, size_t n, const char *word) {
    if (strlen(word) != n) return false;
    for (size_t i = 0; i < n; i++)
        if (lower(p[i]) != (unsigned char)word[i]) return false;
    return true;
}

static bool ends_with(const uint32_t *p, size_t n, const char *end) {
    size_t len = strlen(end);
    return n > len && rrl_word_is(p + n - len, len, end);
}

unsigned rrl_word_classes(const uint32_t *p, size_t n) {
    char padded[LONGEST_WORD + 3] = " ";
    unsigned classes = 0;
    while (n && p[0] == '\'') p++, n--;
    while (n && p[n - 1] == '\'') n--;
    if (n == 0) return 0;
    if (ends_with(p, n, "n't")) return RRL_WORD_DOUBT;
    if (n == 1 && lower(p[0]) == 0x3C0) return RRL_WORD_OPERATOR; /* Greek pi */
    if (n == 2 && p[0] == 'M' && p[1] == 'M') return RRL_WORD_SCALE; /* millions, as banks write them */
    if (n > LONGEST_WORD) return 0;
    for (size_t i = 0; i < n; i++) {
        if (p[i] >= 0x80) return 0;
        padded[1 + i] = (char)lower(p[i]);
    }
    padded[1 + n] = ' ';
    for (size_t k = 0; k < sizeof LISTS / sizeof *LISTS; k++)
        if (strstr(LISTS[k].words, padded)) classes |= LISTS[k].class;
    return classes;
}

bool rrl_word_counted(const uint32_t *p, size_t n) {
    while (n && p[n - 1] == '\'') n--; /* kids' tickets */
    unsigned classes = rrl_word_classes(p, n);
    if (classes & RRL_WORD_UNIT) return true;
    if (classes & (RRL_WORD_NO_NOUN | RRL_WORD_FOLLOWS)) return false;
    if (ends_with(p, n, "men") || ends_with(p, n, "people") || ends_with(p, n, "children") || ends_with(p, n, "fish"))
        return true;
    return n >= 3 && ends_with(p, n, "s") && !ends_with(p, n, "ss");
}
