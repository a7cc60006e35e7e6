#include "report/html.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

rrl_status rrl_html_text(rrl_buffer *b, const char *text) {
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

/* --- tables */

rrl_status rrl_html_table(rrl_buffer *b, const char *caption, const char *const *columns, size_t n,
                          size_t n_text) {
    RRL_TRY(rrl_buffer_printf(b, "<div class=\"table\"><table class=\"t%zu\">", n_text));
    if (*caption) {
        RRL_TRY(rrl_buffer_puts(b, "<caption>"));
        RRL_TRY(rrl_html_text(b, caption));
        RRL_TRY(rrl_buffer_puts(b, "</caption>"));
    }
    RRL_TRY(rrl_buffer_puts(b, "<thead><tr>"));
    for (size_t i = 0; i < n; i++) {
        RRL_TRY(rrl_buffer_puts(b, "<th scope=\"col\">"));
        RRL_TRY(rrl_html_text(b, columns[i]));
        RRL_TRY(rrl_buffer_puts(b, "</th>"));
    }
    return rrl_buffer_puts(b, "</tr></thead><tbody>");
}

rrl_status rrl_html_row(rrl_buffer *b) {
    return rrl_buffer_puts(b, "\n<tr>");
}

rrl_status rrl_html_cell(rrl_buffer *b, const char *text) {
    RRL_TRY(rrl_buffer_puts(b, "<td>"));
    return rrl_html_text(b, text);
}

rrl_status rrl_html_number(rrl_buffer *b, const char *format, double v) {
    char text[64];
    if (isnan(v)) return rrl_buffer_puts(b, "<td class=\"none\" title=\"undefined\">&ndash;");
    snprintf(text, sizeof text, format, v);
    return rrl_html_cell(b, text);
}

rrl_status rrl_html_level(rrl_buffer *b, double level) {
    char text[RRL_NUMBER_CHARS] = "fixed";
    if (!isnan(level)) rrl_format_double(text, level);
    return rrl_html_cell(b, text);
}

rrl_status rrl_html_table_end(rrl_buffer *b) {
    return rrl_buffer_puts(b, "\n</tbody></table></div>\n");
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

rrl_status rrl_html_svg(rrl_buffer *b, const char *svg, const char *name, const char *label) {
    const char *box = strstr(svg, "viewBox="), *body = strstr(svg, "<g id=\"gnuplot_canvas\">");
    const char *background = strstr(svg, "<rect x=\"0\" y=\"0\""), *end = strstr(svg, "</svg>");
    if (!box || !body || !end) return RRL_FAIL(RRL_ERR_DATA, "%s.svg is no drawing of gnuplot", name);
    RRL_TRY(rrl_buffer_puts(b, "<svg xmlns=\"http://www.w3.org/2000/svg\" "
                               "xmlns:xlink=\"http://www.w3.org/1999/xlink\" role=\"img\" "));
    RRL_TRY(rrl_buffer_put(b, box, strcspn(box, "\n")));
    RRL_TRY(rrl_buffer_puts(b, " aria-label=\""));
    RRL_TRY(rrl_html_text(b, label));
    RRL_TRY(rrl_buffer_puts(b, "\">"));
    if (background && background > body && background < end) {
        RRL_TRY(copy_changed(b, body, background, name));
        body = strchr(background, '>') + 1;
    }
    RRL_TRY(copy_changed(b, body, end, name));
    return rrl_buffer_puts(b, "</svg>\n");
}

/* --- style */

const char *rrl_html_style(void) {
    return ":root{color-scheme:light dark;--ground:#fff;--sheet:#f6f7f9;--text:#1b1f24;--soft:#5b6470;--line:#d5d9df;"
           "--mark:#0b63a5;--vermilion:#d55e00;--blue:#0072b2;--green:#00845f;--amber:#b97a00}\n"
           "@media (prefers-color-scheme:dark){:root{--ground:#14171b;--sheet:#1c2026;--text:#e6e9ed;--soft:#9aa4b0;"
           "--line:#3a414b;--mark:#6cb6f0;--vermilion:#ff8a3d;--blue:#5ab4f0;--green:#2fc79b;--amber:#f0b83a}}\n"
           "*{box-sizing:border-box}\n"
           "body{margin:0;background:var(--ground);color:var(--text);font:16px/1.55 system-ui,-apple-system,'Segoe "
           "UI',Roboto,'Noto Sans',sans-serif}\n"
           "main,header,footer{max-width:1080px;margin:0 auto;padding:0 24px}\n"
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
           "footer{color:var(--soft);font-size:.85rem;padding-bottom:40px;margin-top:3em}\n"
           "@media (max-width:600px){dl{grid-template-columns:1fr}main,header,footer{padding:0 14px}}\n"
           "@page{margin:14mm}\n"
           "@media print{:root{color-scheme:light;--ground:#fff;--sheet:#f3f4f6;--text:#000;--soft:#444;--line:#bbb;"
           "--mark:#0b4f85;--vermilion:#d55e00;--blue:#0072b2;--green:#00845f;--amber:#b97a00}\n"
           "body{font-size:10.5pt}main,header,footer{max-width:none;padding:0}nav{display:none}"
           "table{font-size:7.6pt}th,td{padding:.18em .45em}.table{overflow:visible}"
           "figure,tr,.finding{break-inside:avoid}figure svg{max-height:205mm}thead{display:table-header-group}h2,h3,caption{break-after:avoid}"
           "a{color:inherit;text-decoration:none}}\n";
}
