/* The report's pieces through both writers: what a table, a list and a warning look like, what is escaped, what is
 * undefined. */
#include "report/report_tables.h"

#include <math.h>

#include "check.h"
#include "report/report_csv.h"
#include "report/report_page.h"
#include "report/report_text.h"

static rrl_report_difference change = {.arm = "flip", .mean = 0.25};
static rrl_report_measured rows[] = {
    {"a|b", "baseline", 0.2, 0.6, NAN, false, {0, 0}, 3, 0.5, 0.25, &change},
    {"<flip>", "robust", NAN, -0.2, 0.1, true, {0, 0}, 1, -0.125, NAN, NULL},
};
static const rrl_report_measurements measured = {rows, 2, 2};

static void check_table(const rrl_writer *w, const char *want) {
    rrl_buffer b = {0};
    CHECK_OK(rrl_report_prediction_table(&(rrl_document){&b, w}, &measured));
    CHECK_EQ_STR(b.data, want);
    rrl_buffer_free(&b);
}

static void test_tables(void) {
    check_table(&rrl_markdown_writer,
                "\nJ = E[reward | right] - E[reward | wrong], and Corr(reward, right), of training completions:\n\n"
                "| arm | level | method | seeds | J predicted | J measured | correlation predicted | correlation measured | "
                "accuracy - base |\n|---|---|---|---:|---:|---:|---:|---:|---:|\n"
                "| a\\|b | 0.2 | baseline | 3 | +0.600 | +0.500 | \xe2\x80\x93 | +0.250 | +0.250 |\n"
                "| <flip> | fixed | robust | 1 | -0.200 | -0.125 | +0.100 | \xe2\x80\x93 | \xe2\x80\x93 |\n");
    rrl_buffer b = {0};
    CHECK_OK(rrl_report_prediction_table(&(rrl_document){&b, &rrl_html_writer}, &measured));
    CHECK(strstr(b.data, "<tr><td>a|b<td>0.2<td>baseline<td>3<td>+0.600<td>+0.500<td class=\"none\"") != NULL);
    CHECK(strstr(b.data, "\n<tr><td>&lt;flip&gt;<td>fixed<td>robust<td>1<td>-0.200<td>-0.125<td>+0.100") != NULL);
    CHECK(strstr(b.data, "<th scope=\"col\">J measured</th>") != NULL);
    rrl_buffer_free(&b);
}

static void put_pieces(rrl_buffer *b, const rrl_writer *w) {
    static const char *const FILES[] = {"a.csv", "b.csv"};
    static const rrl_chapter CHAPTER = {"results", "Results & more"};
    CHECK_OK(w->chapter(b, &CHAPTER));
    CHECK_OK(w->paragraph(b, RRL_WARNING, "few <seeds>"));
    CHECK_OK(w->list(b, true));
    CHECK_OK(w->item(b, "seed", "42"));
    CHECK_OK(w->list_end(b, true));
    CHECK_OK(w->list(b, false));
    CHECK_OK(w->item(b, NULL, "one"));
    CHECK_OK(w->list_end(b, false));
    CHECK_OK(w->files(b, "Files:", "section-1", FILES, 2));
    CHECK_OK(w->chapter_end(b));
}

static void test_pieces(void) {
    rrl_buffer html = {0}, markdown = {0};
    put_pieces(&html, &rrl_html_writer);
    put_pieces(&markdown, &rrl_markdown_writer);
    CHECK_EQ_STR(html.data,
                 "<section id=\"results\">\n<h2>Results &amp; more</h2>\n"
                 "<div class=\"finding warning\"><p>few &lt;seeds&gt;</p></div>\n<dl>\n<dt>seed</dt><dd>42</dd>\n</dl>\n"
                 "<ul>\n<li>one</li>\n</ul>\n<p class=\"note\">Files: <a href=\"section-1/a.csv\">a.csv</a> "
                 "<a href=\"section-1/b.csv\">b.csv</a></p>\n</section>\n");
    CHECK_EQ_STR(markdown.data, "\n## Results & more\n\n**few <seeds>**\n\n- seed: 42\n\n- one\n\nFiles:\n\n"
                                "- [a.csv](section-1/a.csv)\n- [b.csv](section-1/b.csv)\n");
    rrl_buffer_free(&html);
    rrl_buffer_free(&markdown);
}

static void check_qualification(const rrl_qualification *q, double demanded, const char *want) {
    char text[RRL_REPORT_SENTENCE] = "";
    rrl_report_study s = {.qualification = *q, .demanded = demanded};
    CHECK_EQ_INT(rrl_report_qualification(text, &s), *want != '\0');
    CHECK_EQ_STR(text, want);
}

static void test_qualification(void) {
    rrl_qualification greedy = {.pass1 = 0.25, .questions = 8, .samples = 1, .greedy = true};
    rrl_qualification sampled = {.pass1 = 0.5, .questions = 8, .samples = 4};
    check_qualification(&(rrl_qualification){.pass1 = NAN}, 0, "");
    check_qualification(&(rrl_qualification){.pass1 = NAN}, 0.3,
                        "pass@1 of at least 0.3 is demanded before training; it was not measured yet.");
    check_qualification(&greedy, 0.3, "pass@1 of the untrained model is 0.2500 on 8 validation questions (greedy). The study "
                                      "demands at least 0.3: not qualified.");
    check_qualification(&sampled, 0, "pass@1 of the untrained model is 0.5000 on 8 validation questions (4 sampled answers each).");
}

/* One record has no methods to compare; a report without gaps has no chapter on them; fixed members are called that. */
static void test_what_is_left_out(void) {
    char base[] = "base", evaluation[] = "test", arm[] = "loophole", none[] = "";
    rrl_report_condition c = {.path = none, .kind = evaluation, .arm = arm, .method = base, .level = NAN, .digest = none,
                              .evaluation = evaluation, .n_questions = 2};
    const rrl_report_condition *both[] = {&c, &c};
    rrl_report_section section = {both, 1, 2, none};
    rrl_report_numbers numbers = {.section = &section};
    rrl_report_gap gap = {arm, base, none};
    rrl_report_data data = {.conditions = &c, .n = 1, .gaps = &gap};
    rrl_report_study study = {.label = none};
    rrl_report_page page = {.data = &data, .study = &study};
    for (int n = 1; n <= 2; n++) {
        rrl_buffer finding = {0}, markdown = {0}, html = {0};
        section.n = (size_t)n;
        CHECK_OK(rrl_report_finding(&finding, &numbers));
        CHECK((finding.len > 0) == (n == 2));
        data.n_gaps = (size_t)n - 1;
        CHECK_OK(rrl_report_markdown(&markdown, &page));
        CHECK((strstr(markdown.data, "Not complete") != NULL) == (n == 2));
        CHECK_OK(rrl_report_html(&html, &page));
        CHECK((strstr(html.data, "href=\"#gaps\"") != NULL) == (n == 2));
        rrl_buffer_free(&finding);
        rrl_buffer_free(&markdown);
        rrl_buffer_free(&html);
    }
    rrl_buffer json = {0}, csv = {0};
    section.n = 1;
    CHECK_OK(rrl_json_summary(&json, &numbers));
    CHECK(strstr(json.data, "\"arm\": \"loophole\", \"level\": \"fixed\", \"method\": \"base\"") != NULL);
    CHECK_OK(rrl_csv_summary(&csv, &numbers));
    CHECK(strstr(csv.data, "\nloophole,fixed,base,") != NULL);
    rrl_buffer_free(&json);
    rrl_buffer_free(&csv);
}

int main(void) {
    char signs[RRL_REPORT_SENTENCE];
    test_tables();
    test_pieces();
    test_qualification();
    test_what_is_left_out();
    rrl_report_signs(signs, sizeof signs, &measured);
    CHECK(strstr(signs, "accuracy at 1 of 1 trained arms, levels and methods. Where members are biased") != NULL);
    return CHECK_DONE();
}
