"""The style sheet of the HTML reports."""

from __future__ import annotations

STYLE = """
:root{--ink:#1b2430;--soft:#5b6675;--line:#dde2e8;--paper:#fff;--wash:#f5f7f9;
--blue:#1f5fa8;--orange:#b8540c;--green:#1d7a4a;--red:#a82a2a;--known:#d7e4f2;
color-scheme:light dark}
@media screen and (prefers-color-scheme:dark){:root{--ink:#e3e8ee;--soft:#9aa6b4;--line:#333c47;
--paper:#181d24;--wash:#0f1318;--blue:#7fb2ea;--orange:#e8955a;--green:#5fc48f;--red:#ef8080;
--known:#2a3c52}}
*{box-sizing:border-box}
body{margin:0;background:var(--wash);color:var(--ink);
font:16px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif}
main{max-width:60rem;margin:2rem auto;padding:2.2rem 2.6rem;background:var(--paper);
border:1px solid var(--line);border-radius:6px}
h1{margin:.1rem 0 .6rem;font-size:1.9rem;line-height:1.2}
h2{margin:2.2rem 0 .6rem;font-size:1.05rem;letter-spacing:.01em}
.kind{margin:0;color:var(--soft);font-size:.85rem}
.claim{display:inline-block;padding-left:.7rem;border-left:.4rem solid var(--soft)}
.claim::first-letter{text-transform:uppercase}
.good{border-color:var(--green)}.fair{border-color:var(--blue)}.bad{border-color:var(--red)}
.lead{margin:.2rem 0;font-size:1.15rem}
.model{margin:.3rem 0 0;color:var(--soft);overflow-wrap:anywhere}
table{border-collapse:collapse;width:100%;font-size:.94rem}
th{font-weight:400;text-align:left;color:var(--soft);vertical-align:top}
td,th{padding:.32rem .5rem .32rem 0;border-bottom:1px solid var(--line);overflow-wrap:anywhere}
tr:last-child>*{border-bottom:0}
.facts th{width:38%}
td{font-variant-numeric:tabular-nums}
.coefficients th{color:var(--ink);width:34%}
.num{text-align:right;padding-right:1rem;white-space:nowrap;width:1%}
.size i{display:block;height:.7rem;border-radius:2px;background:var(--blue);min-width:1px}
.size .minus{background:var(--orange)}
.free{color:var(--soft);margin-left:.4rem}
figure{margin:1.4rem 0 0}
figcaption{color:var(--soft);font-size:.85rem;margin-top:.35rem}
.bar{height:1.1rem;background:var(--known);border-radius:3px;overflow:hidden;
-webkit-print-color-adjust:exact;print-color-adjust:exact}
.bar .unknown{display:block;height:100%;background:var(--ink)}
.ends{display:flex;gap:2.2rem;margin-top:.35rem;font-size:.85rem;
color:var(--soft);font-variant-numeric:tabular-nums}
.ends b{color:var(--ink);font-size:1rem;font-weight:600}
.mid{margin-right:auto}.last{text-align:right}
.charts{display:grid;grid-template-columns:repeat(auto-fit,minmax(19rem,1fr));gap:0 2rem}
.charts figure{margin:.2rem 0 0;max-width:33rem}
svg{display:block;width:100%;height:auto}
svg .grid{stroke:var(--line);fill:none}svg .axis{stroke:var(--soft);fill:none}
svg .tick{font-size:12px;fill:var(--soft)}svg .name{font-size:13px;fill:var(--ink)}
svg .value,svg .bound{fill:none;stroke-width:2;stroke:var(--blue);stroke-linejoin:round}
svg .bound{stroke:var(--green)}
.assumptions{list-style:none;margin:0;padding:0}
.assumptions li{padding:.32rem 0 .32rem 9.6rem;position:relative;
border-bottom:1px solid var(--line)}
.assumptions li:last-child{border-bottom:0}
.assumptions b{position:absolute;left:0;font-weight:600;color:var(--green)}
.assumptions .trust b{color:var(--soft)}.assumptions .no b{color:var(--red)}
.again{color:var(--soft);font-size:.9rem}
code{font:.92em ui-monospace,Menlo,Consolas,monospace;background:var(--wash);padding:.05rem .25rem;
border-radius:3px;overflow-wrap:anywhere}
@media(max-width:40rem){main{margin:0;padding:1.2rem 1.1rem;border:0;border-radius:0}
h1{font-size:1.55rem}.facts th{width:42%}
.ends{gap:.9rem}.ends b{font-size:.85rem}.ends span{font-size:.8rem}
.assumptions li{padding-left:0}.assumptions b{position:static;display:block}
.charts{grid-template-columns:1fr}}
@media print{body{background:#fff;font-size:10.5pt}main{border:0;margin:0;padding:0;max-width:none}
section,figure,tr{break-inside:avoid}i{-webkit-print-color-adjust:exact;print-color-adjust:exact}}
"""

__all__ = ["STYLE"]
