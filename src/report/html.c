/* The HTML writer. */
#include <stdio.h>
#include <string.h>

#include "report/writer.h"

/* --- text */

/* With & < > " escaped. */
static rrl_status put_text(rrl_buffer *b, const char *text) {
    while (*text) {
        size_t n = strcspn(text, "&<>\"");
        RRL_TRY(rrl_buffer_put(b, text, n));
        text += n;
        if (!*text) break;
        RRL_TRY(rrl_buffer_puts(b, *text == '&' ? "&amp;" : *text == '<' ? "&lt;" : *text == '>' ? "&gt;" : "&quot;"));
        text++;
    }
    return RRL_OK;
}

/* Text between two tags. */
static rrl_status put_between(rrl_buffer *b, const char *before, const char *text, const char *after) {
    RRL_TRY(rrl_buffer_puts(b, before));
    RRL_TRY(put_text(b, text));
    return rrl_buffer_puts(b, after);
}

static rrl_status heading(rrl_buffer *b, const char *text) {
    return put_between(b, "<h3>", text, "</h3>\n");
}

static rrl_status paragraph(rrl_buffer *b, rrl_tone tone, const char *text) {
    static const char *const BEFORE[] = {[RRL_PLAIN] = "<p>",
                                         [RRL_SOFT] = "<p class=\"soft\">",
                                         [RRL_NOTE] = "<p class=\"note\">",
                                         [RRL_FINDING] = "<div class=\"finding\"><p>",
                                         [RRL_WARNING] = "<div class=\"finding warning\"><p>"};
    return put_between(b, BEFORE[tone], text, tone >= RRL_FINDING ? "</p></div>\n" : "</p>\n");
}

static rrl_status list(rrl_buffer *b, bool facts) {
    return rrl_buffer_puts(b, facts ? "<dl>\n" : "<ul>\n");
}

static rrl_status item(rrl_buffer *b, const char *name, const char *text) {
    if (!name) return put_between(b, "<li>", text, "</li>\n");
    RRL_TRY(put_between(b, "<dt>", name, "</dt>"));
    return put_between(b, "<dd>", text, "</dd>\n");
}

static rrl_status list_end(rrl_buffer *b, bool facts) {
    return rrl_buffer_puts(b, facts ? "</dl>\n" : "</ul>\n");
}

/* --- tables */

static rrl_status table(rrl_buffer *b, const char *caption, const char *const *columns, size_t n, size_t n_text) {
    RRL_TRY(rrl_buffer_printf(b, "<div class=\"table\"><table class=\"t%zu\">", n_text));
    if (*caption) RRL_TRY(put_between(b, "<caption>", caption, "</caption>"));
    RRL_TRY(rrl_buffer_puts(b, "<thead><tr>"));
    for (size_t i = 0; i < n; i++) RRL_TRY(put_between(b, "<th scope=\"col\">", columns[i], "</th>"));
    return rrl_buffer_puts(b, "</tr></thead><tbody>\n");
}

static rrl_status row(rrl_buffer *b) {
    return rrl_buffer_puts(b, "<tr>");
}

static rrl_status cell(rrl_buffer *b, const char *text) {
    if (!text) return rrl_buffer_puts(b, "<td class=\"none\" title=\"undefined\">&ndash;");
    return put_between(b, "<td>", text, "");
}

static rrl_status row_end(rrl_buffer *b) {
    return rrl_buffer_puts(b, "\n");
}

static rrl_status table_end(rrl_buffer *b) {
    return rrl_buffer_puts(b, "</tbody></table></div>\n");
}

/* --- drawings */

/* What becomes of pieces of gnuplot's SVG; "" drops them. The colours are those of plot_parts.c. */
static const struct {
    const char *from, *to;
} CHANGES[] = {{" color=\"black\"", ""},
               {"'black'", "'var(--text)'"},
               {"\"black\"", "\"var(--text)\""},
               {"fill='#ffffff'", "fill='none'"},
               {"'rgb(213,  94,   0)'", "'var(--vermilion)'"},
               {"\"rgb(213,  94,   0)\"", "\"var(--vermilion)\""},
               {"'rgb(  0, 114, 178)'", "'var(--blue)'"},
               {"\"rgb(  0, 114, 178)\"", "\"var(--blue)\""},
               {"\"rgb(213,94,0)\"", "\"var(--vermilion)\""}, /* of labels */
               {"\"rgb(0,114,178)\"", "\"var(--blue)\""},
               {"'rgb(  0, 158, 115)'", "'var(--green)'"},
               {"'rgb(230, 159,   0)'", "'var(--amber)'"},
               {"'rgb(176, 176, 176)'", "'var(--line)'"}};

/* Copies the element without its id attribute and title; ids of marks get the drawing's name. */
static rrl_status copy_changed(rrl_buffer *b, const char *p, const char *end, const char *name) {
    while (p < end) {
        bool changed = false;
        for (size_t i = 0; i < sizeof CHANGES / sizeof *CHANGES && !changed; i++) {
            size_t n = strlen(CHANGES[i].from);
            if (strncmp(p, CHANGES[i].from, n) != 0) continue;
            RRL_TRY(rrl_buffer_puts(b, CHANGES[i].to));
            p += n;
            changed = true;
        }
        if (changed) continue;
        if (strncmp(p, "<title>", 7) == 0 && strstr(p, "</title>")) {
            p = strstr(p, "</title>") + 8;
        } else if (strncmp(p, " id=\"", 5) == 0) {
            p += 5 + strcspn(p + 5, "\"") + 1;
        } else if (strncmp(p, "id='", 4) == 0 || strncmp(p, "href='#", 7) == 0) {
            size_t n = *p == 'i' ? 4 : 7;
            RRL_TRY(rrl_buffer_put(b, p, n));
            RRL_TRY(rrl_buffer_printf(b, "%s-", name));
            p += n;
        } else {
            RRL_TRY(rrl_buffer_put(b, p++, 1));
        }
    }
    return RRL_OK;
}

/* An SVG file of gnuplot as part of a page: no prolog and background, black and the colours of the palette follow the
 * page's style sheet, ids made unique by name. label says what it shows to those who do not see it. */
static rrl_status put_drawing(rrl_buffer *b, const char *svg, const char *name, const char *label) {
    const char *box = strstr(svg, "viewBox="), *body = strstr(svg, "<g id=\"gnuplot_canvas\">");
    const char *background = strstr(svg, "<rect x=\"0\" y=\"0\""), *end = strstr(svg, "</svg>");
    if (!box || !body || !end) return RRL_FAIL(RRL_ERR_DATA, "%s.svg is no drawing of gnuplot", name);
    RRL_TRY(rrl_buffer_puts(b, "<svg xmlns=\"http://www.w3.org/2000/svg\" "
                               "xmlns:xlink=\"http://www.w3.org/1999/xlink\" role=\"img\" "));
    RRL_TRY(rrl_buffer_put(b, box, strcspn(box, "\n")));
    RRL_TRY(rrl_buffer_puts(b, " aria-label=\""));
    RRL_TRY(put_text(b, label));
    RRL_TRY(rrl_buffer_puts(b, "\">"));
    if (background && background > body && background < end) {
        RRL_TRY(copy_changed(b, body, background, name));
        body = strchr(background, '>') + 1;
    }
    RRL_TRY(copy_changed(b, body, end, name));
    return rrl_buffer_puts(b, "</svg>\n");
}

/* --- files */

static rrl_status link_to(rrl_buffer *b, const char *folder, const char *file, const char *text) {
    RRL_TRY(rrl_buffer_printf(b, " <a href=\"%s%s%s\">", folder, *folder ? "/" : "", file));
    return put_between(b, "", text, "</a>");
}

static rrl_status picture(rrl_buffer *b, const rrl_picture *p, const char *folder) {
    static const char *const EXTENSIONS[] = {"csv", "svg", "png", "pdf"};
    char id[RRL_PICTURE_NAME + 32], file[RRL_PICTURE_NAME + 16];
    snprintf(id, sizeof id, "%s-%s", *folder ? folder : "s", p->name);
    RRL_TRY(rrl_buffer_printf(b, "<figure style=\"--width:%dpx\">\n", p->width + p->width / 12));
    if (p->svg) RRL_TRY(put_drawing(b, p->svg, id, p->title));
    RRL_TRY(rrl_buffer_puts(b, "<figcaption>"));
    if (!p->svg) RRL_TRY(put_between(b, "", p->title, ". "));
    RRL_TRY(put_text(b, p->caption));
    for (int f = 0; f < (p->svg ? 4 : 1); f++) {
        snprintf(file, sizeof file, "plots/%s.%s", p->name, EXTENSIONS[f]);
        RRL_TRY(rrl_buffer_puts(b, f ? "," : ""));
        RRL_TRY(link_to(b, folder, file, EXTENSIONS[f]));
    }
    return rrl_buffer_puts(b, "</figcaption></figure>\n");
}

static rrl_status files(rrl_buffer *b, const char *lead, const char *folder, const char *const *names, size_t n) {
    RRL_TRY(put_between(b, "<p class=\"note\">", lead, ""));
    for (size_t i = 0; i < n; i++) RRL_TRY(link_to(b, folder, names[i], names[i]));
    return rrl_buffer_puts(b, "</p>\n");
}

/* --- document */

static const char STYLE[] =
    ":root{color-scheme:light dark;--ground:#fff;--sheet:#f6f7f9;--text:#1b1f24;--soft:#5b6470;--line:#d5d9df;"
    "--mark:#0b63a5;--vermilion:#d55e00;--blue:#0072b2;--green:#00845f;--amber:#b97a00}\n"
    "@media (prefers-color-scheme:dark){:root{--ground:#14171b;--sheet:#1c2026;--text:#e6e9ed;--soft:#9aa4b0;"
    "--line:#3a414b;--mark:#6cb6f0;--vermilion:#ff8a3d;--blue:#5ab4f0;--green:#2fc79b;--amber:#f0b83a}}\n"
    "*{box-sizing:border-box}\n"
    "body{margin:0;background:var(--ground);color:var(--text);font:16px/1.55 system-ui,-apple-system,'Segoe "
    "UI',Roboto,'Noto Sans',sans-serif}\n"
    "main,header{max-width:1080px;margin:0 auto;padding:0 24px}\n"
    "header{padding-top:40px}\n"
    "h1{font-size:1.9rem;line-height:1.2;margin:0 0 .3em}\n"
    "h2{font-size:1.35rem;margin:2.4em 0 .6em;padding-top:.6em;border-top:1px solid var(--line)}\n"
    "h3{font-size:1.08rem;margin:2em 0 .5em}\n"
    "p,li{max-width:75ch}\n"
    "a{color:var(--mark)}\n"
    "code{font:.92em ui-monospace,'DejaVu Sans Mono',monospace;overflow-wrap:anywhere}\n"
    ".soft,.note{color:var(--soft);font-size:.92rem}\n"
    "nav ul{display:flex;flex-wrap:wrap;gap:.2em 1.4em;list-style:none;padding:0;margin:1em 0}\n"
    ".finding{background:var(--sheet);border-left:4px solid var(--mark);padding:.9em 1.2em;margin:1.2em 0;"
    "border-radius:0 6px 6px 0}\n"
    ".finding p{margin:.4em 0}\n"
    ".warning{border-left-color:var(--amber)}\n"
    ".table{overflow-x:auto;margin:1em 0}\n"
    "table{border-collapse:collapse;font-size:.84rem;font-variant-numeric:tabular-nums;white-space:nowrap}\n"
    "caption{text-align:left;font-weight:600;padding:0 0 .5em}\n"
    "th,td{padding:.28em .55em;text-align:right;border-bottom:1px solid var(--line)}\n"
    "th{color:var(--soft);font-weight:600;vertical-align:bottom;white-space:normal}\n"
    ".t1 :is(th,td):nth-child(-n+1),.t2 :is(th,td):nth-child(-n+2),.t3 :is(th,td):nth-child(-n+3),"
    ".t4 :is(th,td):nth-child(-n+4){text-align:left}\n"
    ".t9 :is(th,td){text-align:left;white-space:normal;vertical-align:top}\n"
    "tbody tr:hover{background:var(--sheet)}\n"
    ".none{color:var(--soft)}\n"
    "figure{margin:2em 0}\n"
    "figure svg{display:block;width:100%;max-width:var(--width);height:auto;color:var(--text)}\n"
    "figcaption{color:var(--soft);font-size:.9rem;max-width:80ch;margin-top:.4em}\n"
    "dl{display:grid;grid-template-columns:minmax(12em,auto) 1fr;gap:.3em 1.2em}\n"
    "dt{color:var(--soft)}dd{margin:0;overflow-wrap:anywhere}\n"
    "main{padding-bottom:40px}\n"
    "@media (max-width:600px){dl{grid-template-columns:1fr}main,header{padding:0 14px}}\n"
    "@page{margin:14mm}\n"
    "@media print{:root{color-scheme:light;--ground:#fff;--sheet:#f3f4f6;--text:#000;--soft:#444;--line:#bbb;"
    "--mark:#0b4f85;--vermilion:#d55e00;--blue:#0072b2;--green:#00845f;--amber:#b97a00}\n"
    "body{font-size:10.5pt}main,header{max-width:none;padding:0}nav{display:none}"
    "table{font-size:7.6pt}th,td{padding:.18em .45em}.table{overflow:visible}"
    "figure,tr,.finding{break-inside:avoid}figure svg{max-height:205mm}thead{display:table-header-group}"
    "h2,h3,caption{break-after:avoid}"
    "a{color:inherit;text-decoration:none}}\n";

static rrl_status begin(rrl_buffer *b, const char *title, const char *subtitle, const rrl_chapter *v, size_t n) {
    RRL_TRY(rrl_buffer_puts(b, "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta "
                               "name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta "
                               "name=\"color-scheme\" content=\"light dark\">\n"));
    RRL_TRY(put_between(b, "<title>", title, "</title>\n"));
    RRL_TRY(rrl_buffer_printf(b, "<style>\n%s</style>\n</head>\n<body>\n<header>\n", STYLE));
    RRL_TRY(put_between(b, "<h1>", title, "</h1>\n"));
    RRL_TRY(put_between(b, "<p class=\"soft\">", subtitle, "</p>\n<nav><ul>"));
    for (size_t i = 0; i < n; i++) {
        RRL_TRY(rrl_buffer_printf(b, "<li><a href=\"#%s\">", v[i].id));
        RRL_TRY(put_between(b, "", v[i].title, "</a></li>"));
    }
    return rrl_buffer_puts(b, "</ul></nav>\n</header>\n<main>\n");
}

static rrl_status end(rrl_buffer *b) {
    return rrl_buffer_puts(b, "</main>\n</body>\n</html>\n");
}

static rrl_status chapter(rrl_buffer *b, const rrl_chapter *c) {
    RRL_TRY(rrl_buffer_printf(b, "<section id=\"%s\">\n", c->id));
    return put_between(b, "<h2>", c->title, "</h2>\n");
}

static rrl_status chapter_end(rrl_buffer *b) {
    return rrl_buffer_puts(b, "</section>\n");
}

const rrl_writer rrl_html_writer = {begin, end,  chapter, chapter_end, heading, paragraph, list,  item,
                                    list_end, table, row, cell, row_end, table_end, picture, files};
