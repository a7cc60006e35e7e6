/* How completions really end, and what a careful reader takes for their answer: a value, or nothing (NULL) where the
 * text does not state one, or where its policy (docs/verification.md) is not to guess. LINES are answer lines and must
 * read the same behind each marker; WHOLE are completions. */
#include "check.h"

#include <string.h>

#include "base/text.h"
#include "rrl/verify.h"

typedef struct {
    const char *text, *value;
} ending;

/* clang-format off */
static const ending LINES[] = {
    {"She paid USD 12m", NULL}, {"She paid EUR 12k", NULL}, {"It cost USD 12 m", NULL}, {"USD 12m", NULL},
    {"It raised 12m USD", NULL}, {"It raised 12 m USD", NULL}, {"They raised \xC2\xA3""12m", NULL},
    {"They earned 12m dollars", NULL}, {"12m people", NULL}, {"12m apples", NULL}, {"12M users", NULL},
    {"12K run", NULL}, {"She ran 12m", "12"}, {"The rope is 12m long", "12"}, {"12m of rope", "12"},
    {"12m euros", NULL}, {"Rs 12k", NULL}, {"Rs. 12 lakh", NULL}, {"$12k", NULL}, {"$12K", NULL}, {"$12bn", NULL},
    {"$12M per year", NULL}, {"$ 12 million", NULL}, {"12 Mio.", NULL}, {"US$12", "12"}, {"US$12m", NULL},
    {"A$12m", NULL}, {"12\xE2\x82\xAC", "12"}, {"12m\xE2\x82\xAC", NULL}, {"\xE2\x82\xAC""12m", NULL},
    {"12 grand", NULL}, {"few have 12", NULL}, {"Few have 12", NULL}, {"Few people have 12", NULL},
    {"The fewest have 12", NULL}, {"None have 12", NULL}, {"Nobody else has 12", NULL}, {"No child has 12", NULL},
    {"Some have 12", NULL}, {"Some of them have 12", NULL}, {"Others have 12", NULL}, {"He is missing 12", "12"},
    {"He failed to get 12", NULL}, {"She needs 12", "12"}, {"She refused to pay 12", NULL},
    {"Bob denied having 12", NULL}, {"The wrong answer is 12", NULL}, {"The original price was 12", "12"},
    {"My first attempt gave 12", NULL}, {"I first thought it was 12", NULL}, {"I thought it was 12", NULL},
    {"One might say it is 12", NULL}, {"Some say it is 12", NULL}, {"It should be 12", "12"}, {"10-12", NULL},
    {"10 - 12", NULL}, {"10\xE2\x80\x93""12", NULL}, {"10\xE2\x80\x94""12", NULL}, {"10 to 12", NULL},
    {"10..12", NULL}, {"10...12", NULL}, {"10 through 12", NULL}, {"from 10 until 12", NULL},
    {"between ten and 12", NULL}, {"ten to 12", NULL}, {"ten or 12", NULL}, {"12 or 13", NULL}, {"12/13", "12/13"},
    {"12 and 13", NULL}, {"12; 13", NULL}, {"12 | 13", NULL}, {"12 & 13", NULL}, {"12, or thirteen", NULL},
    {"12 vs 13", NULL}, {"12 \xC2\xB1 1", NULL}, {"12 +/- 1", NULL}, {"12 \\pm 1", NULL}, {"12(3)", NULL},
    {"[10, 12]", NULL}, {"{12}", NULL}, {"\\{12\\}", NULL}, {"[12]", NULL}, {"(12)", "12"}, {"<12>", NULL},
    {">12", NULL}, {"< 12", NULL}, {"\xE2\x89\xA4 12", NULL}, {"\\leq 12", NULL}, {"\\approx 12", NULL},
    {"\xE2\x89\x88""12", NULL}, {"> 12", NULL}, {"== 12", NULL}, {"!= 12", NULL}, {"\xE2\x89\xA0 12", NULL},
    {"\\neq 12", NULL}, {"3 1/2", "7/2"}, {"3-1/2", NULL}, {"3 - 1/2", NULL}, {"3\xC2\xBD", "7/2"},
    {"3 and 1/2", NULL}, {"3 1/2 cups", "7/2"}, {"1/2 cup", "1/2"}, {"half a cup", NULL}, {"1/2 half", NULL},
    {"3:4", NULL}, {"3 : 4", NULL}, {"3 to 4", NULL}, {"12:30", NULL}, {"12:30 pm", NULL}, {"12 pm", "12"},
    {"12 a.m.", "12"}, {"12h30", NULL}, {"12h 30m", NULL}, {"12 h 30 min", NULL}, {"12' 6\"", NULL}, {"12'6", NULL},
    {"12\"", "12"}, {"5'12", NULL}, {"12/25/2024", NULL}, {"2024-12-01", NULL}, {"12 December", NULL},
    {"December 12", NULL}, {"Dec 12", NULL}, {"May 12", NULL}, {"12 May 2024", NULL}, {"12 Dec", NULL},
    {"the 12th", "12"}, {"12th", "12"}, {"chapter 12", NULL}, {"step 12", NULL}, {"Step 12: done", NULL},
    {"Question 12", NULL}, {"equation 12", NULL}, {"Exercise 12", NULL}, {"option 12", NULL}, {"not 12", NULL},
    {"It's not 12", NULL}, {"12 not", NULL}, {"12?", NULL}, {"12?\?", NULL}, {"12 (?)", NULL}, {"(12?)", NULL},
    {"12 ?\?", NULL}, {"\\boxed{12}", "12"}, {"\\boxed{12?}", NULL}, {"\\boxed{\\text{not } 12}", NULL},
    {"\\boxed{12 \\text{ or } 13}", NULL}, {"\\boxed{\\frac{1}{2}}", "1/2"}, {"\\boxed{3\\frac{1}{2}}", "7/2"},
    {"\\boxed{12\\text{k}}", NULL}, {"\\boxed{12\\text{ m}}", "12"}, {"\\boxed{\\$12\\text{m}}", NULL},
    {"\\boxed{\\$12\\text{ million}}", NULL}, {"\\boxed{12}\\text{k}", NULL}, {"\\boxed{12}k", NULL},
    {"\\boxed{12} million", NULL}, {"\\boxed{12}%", "12"}, {"\\boxed{12} apples", "12"},
    {"\\boxed{12} or \\boxed{13}", NULL}, {"\\boxed{12}, \\boxed{13}", NULL}, {"\\boxed{12} and \\boxed{13}", NULL},
    {"not \\boxed{12}", NULL}, {"less than \\boxed{12}", NULL}, {"\\boxed{1}\\boxed{2}", NULL},
    {"\\boxed{12}^2", NULL}, {"-\\boxed{12}", NULL}, {"3 + \\boxed{12}", NULL}, {"\\sqrt{\\boxed{12}}", NULL},
    {"\\boxed{12}/5", NULL}, {"\\boxed{12} \\times 10^3", NULL}, {"\\boxed{12}^{\\circ}", "12"},
    {"\\boxed{12}?", NULL}, {"\\boxed{12...}", NULL}, {"\\boxed{x=12}", "12"}, {"\\boxed{12_{10}}", NULL},
    {"\\boxed{12_8}", NULL}, {"\\boxed{1100_2}", NULL}, {"12_8", NULL}, {"0x12", NULL}, {"0b11", NULL}, {"012", "12"},
    {"1 200", "1200"}, {"1,20", NULL}, {"1,200", "1200"}, {"1.200", "6/5"}, {"1.200,50", NULL}, {"1'200", NULL},
    {"1_200", NULL}, {"1,2,3", NULL}, {"1, 200", NULL}, {"1 ,200", NULL}, {"1,200.5", "2401/2"}, {"12,5", NULL},
    {"12,", NULL}, {"$12.", "12"}, {"$12.5", "25/2"}, {"12.50$", "25/2"}, {"1 20", NULL}, {"1 2", NULL},
    {"12 0", NULL}, {"12.0.", "12"}, {"12. 5", NULL}, {".12.", "3/25"}, {"12... wait, 14", NULL},
    {"12... wait", NULL}, {"12. Wait, let me check", NULL}, {"12, wait, no, 14", NULL}, {"12 wait", NULL},
    {"12 hmm", NULL}, {"12 hold on", NULL}, {"12, hold on", NULL}, {"12. Hold on, I forgot the tax.", NULL},
    {"12. Actually, I made an error.", NULL}, {"12. Actually I forgot something", NULL}, {"12. Oops", NULL},
    {"12. Oh, I forgot to add the tip.", NULL}, {"12. Let me double check.", NULL},
    {"12. On second thought, more.", NULL}, {"12 - no, 13", NULL}, {"12 -> 13", NULL}, {"12 \xE2\x86\x92 13", NULL},
    {"12 => 13", NULL}, {"12. However, that is too small.", NULL}, {"12. That seems too low.", NULL},
    {"12. That can't be right", NULL}, {"12. This is too high.", NULL}, {"12, although he needs more", NULL},
    {"12, although this is not certain", NULL}, {"12. Sorry, I meant thirteen.", NULL},
    {"12. Correction: thirteen", NULL}, {"12, scratch that", NULL}, {"12, I think", "12"}, {"12 (I think)", "12"},
    {"12 (approx.)", "12"}, {"12 (approximately)", "12"}, {"12 (rounded)", "12"},
    {"12, rounded to the nearest integer", "12"}, {"12 (rounded up)", "12"}, {"12 (not sure)", NULL},
    {"12 (wrong)", NULL}, {"12 [wrong]", NULL}, {"12 \xE2\x9C\x97", NULL}, {"12 \xE2\x9D\x8C", NULL},
    {"approximately 12", "12"}, {"approx 12", "12"}, {"~12", NULL}, {"circa 12", NULL}, {"c. 12", NULL},
    {"12x", NULL}, {"12 x", NULL}, {"12x faster", NULL}, {"12 \xC3\x97 faster", NULL}, {"x12", NULL}, {"12^2", NULL},
    {"12^{2}", NULL}, {"12**2", NULL}, {"12 ** 2", NULL}, {"12^", NULL}, {"12!", "12"}, {"12! = many", NULL},
    {"12 %", "12"}, {"12%", "12"}, {"12 percent", "12"}, {"12 percentage points", "12"}, {"12 per cent", "12"},
    {"12pp", NULL}, {"12 per mille", NULL}, {"12\xE2\x80\xB0", NULL}, {"12 ppm", NULL}, {"12 basis points", "12"},
    {"1e3", "1000"}, {"1e3 apples", "1000"}, {"1E3", "1000"}, {"1e", NULL}, {"1e+", NULL}, {"1 e3", NULL},
    {"1*10^3", "1000"}, {"10^3", NULL}, {"1.2e3", "1200"}, {"12e", NULL}, {"12 e", NULL}, {"12\\pi", NULL},
    {"12\xCF\x80", NULL}, {"12 pi", NULL}, {"12i", NULL}, {"12 + 3i", NULL}, {"12\\sqrt{3}", NULL},
    {"12\xE2\x88\x9A""3", NULL}, {"\xE2\x88\x9A""12", NULL}, {"|12|", NULL}, {"-|12|", NULL}, {"12|", NULL},
    {"\xE2\x8C\x8A""12\xE2\x8C\x8B", NULL}, {"twelve", NULL}, {"a dozen", NULL}, {"one dozen", NULL},
    {"dozen 12", NULL}, {"12 dozens", NULL}, {"12 gross", NULL}, {"12 pairs", "12"}, {"12 couple", NULL},
    {"12 score and 5", NULL}, {"1 dozen", NULL}, {"\xE2\x88\x92""12", "-12"}, {"\xEF\xBC\x8D""12", "-12"},
    {"\xE2\x80\x93 12", "-12"}, {"\xE2\x80\x94""12", NULL}, {"\xE2\x80\x94 12", NULL}, {"\xD9\xA1\xD9\xA2", "12"},
    {"\xEF\xBC\x91\xEF\xBC\x92", "12"}, {"\xE0\xA5\xA7\xE0\xA5\xA8", "12"}, {"\xE2\x91\xA0\xE2\x91\xA1", NULL},
    {"\xE2\x91\xAB", NULL}, {"\xE2\x85\xAB", NULL}, {"XII", NULL}, {"1\xC2\xB2""2", NULL}, {"\xC2\xB9\xC2\xB2", NULL},
    {"\xE2\x82\x81\xE2\x82\x82", NULL}, {"12\xE2\x82\x81", NULL}, {"12\xC2\xB9", NULL}, {"12*", "12"}, {"12**", "12"},
    {"12\xE2\x80\xA0", NULL}, {"12 (1)", NULL}, {"12 <-- answer", NULL}, {"12</s>", NULL}, {"12<|endoftext|>", NULL},
    {"12 <|im_end|>", NULL}, {"12 User: next question", NULL}, {"12. Question: how many", NULL}, {"12.Q: next", NULL},
    {"12Q", NULL}, {"12\n", "12"}, {"12\\n", NULL}, {"12\nQuestion 13: What?", "12"}, {"12 (mod 5)", NULL},
    {"12 mod 5", NULL}, {"12 modulo five", NULL}, {"12 remainder one", NULL}, {"12 R1", NULL}, {"12 r 1", NULL},
    {"12 rem 1", NULL}, {"12 with 1 left", NULL}, {"12, 1 left over", NULL}, {"12 boxes and 1 more", NULL},
    {"12 boxes plus one", NULL}, {"12 boxes, with one extra", NULL}, {"12 boxes and another one", NULL},
    {"12 boxes and another box", NULL}, {"12 boxes each with three", NULL}, {"12 groups of 3", NULL},
    {"12 groups of three", NULL}, {"12 by 3", NULL}, {"12 by five", NULL}, {"12 x 5", NULL},
    {"12 feet 3 inches", NULL}, {"12 feet by three feet", NULL}, {"12 hours and half", NULL}, {"12 and half", NULL},
    {"12 and three quarters", NULL}, {"12 plus tax", NULL}, {"12 minus tax", NULL}, {"12 after tax", "12"},
    {"12 dollars plus tip", NULL}, {"12 dollars less discount", NULL}, {"12 dollars minus the discount", NULL},
    {"12 short", NULL}, {"12 under par", NULL}, {"12 below", NULL}, {"12 negative", NULL}, {"12 (negative)", NULL},
    {"12 degrees below zero", NULL}, {"12 BC", NULL}, {"12 loss", NULL}, {"a loss of 12", "12"},
    {"-12 dollars", "-12"}, {"- $12", "-12"}, {"$-12", "-12"}, {"-$12", "-12"}, {"($12)", "12"}, {"(12)%", NULL},
    {"minus $12", NULL}, {"$12 and 50 cents", NULL}, {"$12.50 and change", NULL}, {"12 dollars 50", NULL},
    {"12 dollars, 50 cents", NULL}, {"12 dollars fifty", NULL}, {"12c", "12"}, {"12\xC2\xA2", "12"}, {"12 c", "12"},
    {"12 cents", "12"}, {"12b", NULL}, {"12T", NULL}, {"12 G", NULL}, {"12G", NULL}, {"12g", "12"}, {"12 Gs", NULL},
    {"12Ks", NULL}, {"12ks", NULL}, {"12 mn", NULL}, {"12mn", NULL}, {"12MM", NULL}, {"12 mln", NULL},
    {"12mln", NULL}, {"12 mrd", NULL}, {"12 Mrd. Euro", NULL}, {"12 tsd", NULL}, {"12 tsd.", NULL}, {"12 thou", NULL},
    {"12 thou dollars", NULL}, {"12 hundred dollars", NULL}, {"12 hundreds", NULL}, {"12 tens", NULL},
    {"12 ten", NULL}, {"12 units", "12"}, {"12 thousand-dollar bills", NULL}, {"12 hundred-dollar bills", NULL},
    {"12 five-dollar bills", NULL}, {"12 half-dollars", NULL}, {"12 half dollars", NULL}, {"12 half-hours", NULL},
    {"12 quarter-hours", NULL}, {"12 half hours", NULL}, {"12 times the number", NULL}, {"12 times her age", NULL},
    {"12 times as old", "12"}, {"12 times five", NULL}, {"12 times x", NULL}, {"12 times a day", "12"},
    {"12 times per week", "12"}, {"12 times that", NULL}, {"12 times larger", "12"}, {"12 multiplied by two", NULL},
    {"12 divided by two", NULL}, {"12 increased by two", NULL}, {"12 added to that", NULL}, {"12 more than x", NULL},
    {"12 fewer than y", NULL}, {"12 years younger than Bob", "12"}, {"12 years from now", "12"},
    {"12 years ago", "12"}, {"12 years old", "12"}, {"12 years older than twice Bob", NULL}, {"it isnt 12", NULL},
    {"she doesnt have 12", NULL}, {"He cant have 12", NULL}, {"as opposed to 12", NULL},
    {"It is similar to 12", NULL}, {"compared to 12", NULL}, {"We ruled out 12", NULL}, {"half past 12", NULL},
    {"quarter past 12", NULL}, {"ten past 12", NULL}, {"12 past", NULL}, {"12 weeks and a day", NULL},
    {"12 dollars and a cent", NULL}, {"12 at best", NULL}, {"12 at worst", NULL}, {"12 out of twenty", NULL},
    {"1 in five", NULL}, {"12 is the upper bound", NULL}, {"The revenue is 12m", NULL}, {"She paid 12m", NULL},
    {"The population is 12m", NULL}, {"Her salary is 12 K", NULL}, {"other than 12", NULL}, {"apart from 12", NULL},
    {"shy of 12", NULL}, {"Some of the children have 12", NULL}, {"Rs. 12", NULL},
    {"12 (estimated)", "12"}, {"12 off", "12"}, {"in 2024", "2024"}, {"It seems to be 12", "12"}, {"12,- Euro", "12"},
    {"12. Let me verify this.", "12"}, {"Initially she had 12", "12"}, {"The old price was 12", "12"},
    {"12 double rooms", NULL}, {"Day 12", NULL}, {"12 \xE2\x9C\x93", NULL},
};

static const ending WHOLE[] = {
    {"The answer is 12. The correct answer is thirteen.", NULL},
    {"Final answer: 12\nWait, that is wrong. It should be 14.", NULL},
    {"Final answer: 12\n\nActually, I forgot the tax, so 14.", NULL},
    {"Final answer: 12\nWait a moment.\nFinal answer: 14", "14"}, {"Final answer: 12\nNo, that is wrong.", NULL},
    {"Final answer: 12\n\nOops, I misread.", NULL}, {"Final answer: 12\nNote: She waits for 3 hours.", "12"},
    {"\\boxed{12}\n\nWait, let me recompute.", NULL}, {"Final answer: 12\nCorrection: 14", NULL},
    {"The answer is 1", "1"}, {"The answer is 12 or", NULL}, {"The answer is 12,", NULL}, {"The answer is 12.", "12"},
    {"The answer is $", NULL}, {"The answer is -", NULL}, {"The answer is 1,", NULL}, {"The answer is 1/", NULL},
    {"The answer is \\boxed{1", NULL}, {"The answer is \\frac{1}{", NULL}, {"The answer is \\frac{1}{2", NULL},
    {"The answer is 12 ap", NULL}, {"The answer is 12 apples a", "12"}, {"The answer is 12 mill", NULL},
    {"The answer is 12 b", NULL}, {"The answer is 12 hu", NULL}, {"The answer is 1e", NULL},
    {"The answer is 12^", NULL}, {"The answer is 12 *", NULL}, {"The answer is 12 +", NULL},
    {"The answer is 3 + 9 = 12", NULL}, {"The answer is x + 12", NULL}, {"#### 12 The answer is 12", "12"},
    {"#### 12 #### 13", "13"}, {"#### $12", "12"}, {"#### 12.00 dollars", "12"}, {"#### 12 apples (not pears)", NULL},
    {"#### 12\n#### ", NULL}, {"The answer is: it depends. 12", NULL}, {"the answer is the number after 12", NULL},
    {"the answer is A) 12", NULL}, {"the answer is (B) 12", NULL}, {"the answer is B: 12", "12"},
    {"the answer is option 3", NULL}, {"the answer is found by adding 12", NULL},
    {"the answer is obtained by multiplying by 12", NULL}, {"the answer is smaller: 12", "12"},
    {"the answer is given in line 12", NULL}, {"the answer is given by equation 12", NULL},
    {"the answer is on page 12", NULL}, {"the answer is hidden in row 12", NULL},
    {"the answer is computed with 12 apples", NULL}, {"the answer is calculated from the 12 apples", NULL},
    {"the answer is divisible by 12", NULL}, {"the answer is odd and smaller, 12", NULL},
    {"the answer is unknown, 12", NULL}, {"the answer is wrong, 12", NULL}, {"the answer is 12 for part", "12"},
    {"the answer is that all 12 fit", NULL}, {"the answer is to buy 12", "12"},
    {"the answer is to use 12 boxes", "12"}, {"the answer is yes, 12", NULL}, {"the answer is no, 12", NULL},
    {"the answer is that she needs 12", "12"}, {"the answer is that she already had 12", "12"},
    {"the answer is unclear; she has 12", NULL}, {"the answer is what remains after 12 leave", NULL},
    {"the answer is larger. She has 12", NULL}, {"the answer is greater if she has 12", NULL},
    {"the answer is negative: 12", NULL}, {"the answer is positive: 12", "12"}, {"the answer is below 12", NULL},
    {"the answer is just 12", "12"}, {"the answer is 12 only", "12"}, {"the answer is only part of 12", NULL},
    {"the answer is rounded to 12", "12"}, {"the answer is rounded up to 12", NULL},
    {"the answer is closest to 12", NULL}, {"the answer is the 12", "12"}, {"the answer is the number 12", "12"},
    {"the answer is the integer 12", "12"}, {"the answer is the fraction 3/4", "3/4"},
    {"the answer is the decimal 0.5", "1/2"}, {"Thus she has \\boxed{12}/day.", "12"},
    {"x = 3 + 9 = \\boxed{12}.", "12"}, {"Total: **\\boxed{12}**", "12"}, {"- \\boxed{12}", "12"},
    {"Answer - \\boxed{12}", "12"}, {"> \\boxed{12}", "12"}, {"It is $-\\boxed{12}$", NULL},
    {"It is \\frac{\\boxed{12}}{2}", NULL}, {"It is \\text{\\boxed{12}}", "12"}, {"2^{\\boxed{12}}", NULL},
    {"\\boxed{12}, since 3 + 9 = 12", "12"}, {"\\boxed{12} and a half", NULL}, {"\\boxed{12} if she sells all", "12"},
    {"\\boxed{1},200", NULL}, {"\\boxed{3}:4", NULL}, {"x \\geq \\boxed{12}", NULL}, {"twice \\boxed{12}", NULL},
    {"\\boxed{10} to \\boxed{12}", NULL}, {"\\boxed{10}-\\boxed{12}", NULL},
    {"First \\boxed{3}. Then \\boxed{5}.", "5"}, {"\\boxed{12}. Wait, that is the cost.", NULL},
    {"Final answer: 12\nShe waits for 3 hours.", "12"}, {"Final answer: 12\nNobody knows.", "12"},
    {"Final answer: 12\nWaiting is over.", "12"}, {"The answer is \\text{12", NULL},
    {"Wait, I see. Final answer: 12", "12"},
};
/* clang-format on */

/* The value that the parser reads where a number is asked for. */
static void check_ending(const char *text, const char *wanted) {
    char *answer = NULL, *value = NULL;
    size_t len, at;
    bool counts = false;
    CHECK_OK(rrl_answer_extract(&answer, &len, &at, text, strlen(text)));
    CHECK_OK(rrl_answer_counts(&counts, answer, len, "12", 2));
    if (counts) CHECK_OK(rrl_answer_rational(&value, answer, len));
    if (!CHECK_EQ_STR(value, wanted)) fprintf(stderr, "  completion: %s\n", text);
    free(answer);
    free(value);
}

int main(void) {
    static const char *const MARKERS[] = {"Final answer: ", "3 + 9 is added.\n#### ", "The answer is "};
    for (size_t m = 0; m < sizeof MARKERS / sizeof *MARKERS; m++)
        for (size_t k = 0; k < sizeof LINES / sizeof *LINES; k++) {
            rrl_buffer text = {0};
            if (CHECK_OK(rrl_buffer_printf(&text, "%s%s", MARKERS[m], LINES[k].text)))
                check_ending(text.data, LINES[k].value);
            rrl_buffer_free(&text);
        }
    for (size_t k = 0; k < sizeof WHOLE / sizeof *WHOLE; k++) check_ending(WHOLE[k].text, WHOLE[k].value);
    return CHECK_DONE();
}
