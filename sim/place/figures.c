#include "sim/place/figure.h"

#define K24 "24x24x24", "3D(2,1)", "7p"
#define K12 "12x12x12", "3D(2,1)", "7p"
#define K100 "100x100", "2D(2,1)", "5p"
#define SAMPLES 3686400
#define COLLECTIVE_SAMPLES 100000

/* Worst, mean and best of two methods, as the paper draws them; FIRST thick, SECOND thin. */
#define TWO(first, second)                                                                                             \
    "set xlabel 'node failures'; set ylabel 'messages on the most used link'; set key left top\n"                      \
    "m(s,c)=strcol(1) eq s ? column(c) : 1/0\n"                                                                        \
    "plot CSV using 2:(m('" first "',4)) w l lw 2.5 lc 1 t '" first " worst', '' using 2:(m('" first                   \
    "',5)) w l lw 2.5 lc 2 t 'mean', '' using 2:(m('" first "',6)) w l lw 2.5 lc 3 t 'best', '' using 2:(m('" second   \
    "',4)) w l lw 1 dt 2 lc 1 t '" second " worst', '' using 2:(m('" second                                            \
    "',5)) w l lw 1 dt 2 lc 2 t 'mean', '' using 2:(m('" second "',6)) w l lw 1 dt 2 lc 3 t 'best'\n"

/* Mean of several methods, worst dotted. */
#define FOUR                                                                                                           \
    "set xlabel 'node failures'; set ylabel 'messages on the most used link'; set key left top\n"                      \
    "m(s,c)=strcol(1) eq s ? column(c) : 1/0\n"                                                                        \
    "N='0D hybrid(all) hybrid(-2D) balance'\n"                                                                         \
    "plot for [i=1:words(N)] CSV using 2:(m(word(N,i),5)) w l lw 2 lc i t word(N,i).' mean', for [i=1:words(N)] '' "   \
    "using 2:(m(word(N,i),4)) w l lw 1 dt 2 lc i t (i==1 ? 'worst' : '')\n"

#define COLLECTIVE                                                                                                     \
    "set xlabel 'node failures'; set ylabel 'collisions, relative to no failure'; set key left top\n"                  \
    "m(s,p)=strcol(1) eq s && strcol(ncol) eq p\n"                                                                     \
    "ncol=columns_\n"                                                                                                  \
    "plot CSV using 2:(m('hybrid(all)','barrier') ? $5/base_b : 1/0) w l lw 2 lc 1 t 'hybrid(all), recursive "         \
    "doubling, mean', '' using 2:(m('hybrid(-2D)','barrier') ? $5/base_b : 1/0) w l lw 2 lc 2 t 'hybrid(-2D), "        \
    "recursive doubling, mean', '' using 2:(m('hybrid(all)','ring') ? $5/base_r : 1/0) w l lw 2 lc 3 t 'hybrid(all), " \
    "ring, mean', '' using 2:(m('hybrid(-2D)','ring') ? $5/base_r : 1/0) w l lw 2 lc 4 t 'hybrid(-2D), ring, mean'\n"

const struct figure figures[] = {
    {.name = "3",
     .title = "Share of spare nodes",
     .data = figure_shares,
     .plot = "set logscale x; set xlabel 'nodes'; set ylabel 'spare nodes, %'; set yrange [0:50]\n"
             "Q='2 2 3 3 3'; R='1 2 1 2 3'\n"
             "plot for [i=1:5] CSV using 4:($1==int(word(Q,i)) && $2==int(word(R,i)) ? $5 : 1/0) w l lw 2 lc i t "
             "word(Q,i).'D('.word(R,i).',1)'\n"},
    {.name = "8",
     .title = "Worst cases (5-point stencil)",
     .data = figure_worst,
     .plot =
         "set xlabel 'node failures'; set ylabel 'messages on the most used link'; set xrange [0.5:10.5]; set key left "
         "top\n"
         "m(a,b,c,d)=strcol(1) eq a && column(3)==b && strcol(5) eq c && strcol(6) eq d ? column(9) : 1/0\n"
         "plot CSV using 8:(m('0D',1,'mesh','law')) w l lw 1 lc 1 t '0D 2D(1,1) mesh, law', "
         "'' using 8:(m('0D',1,'torus','law')) w l lw 1 lc 2 t '0D 2D(1,1) torus, law', "
         "'' using 8:(m('0D',1,'31x31','all')) w p pt 6 lc 1 t '0D 2D(1,1) 31x31, all messages', "
         "'' using 8:(m('0D',1,'31x31','received')) w p pt 2 lc 1 t 'without those sent by substituted ranks', "
         "'' using 8:(m('0D',1,'61tx61t','all')) w p pt 8 lc 2 t '0D 2D(1,1) torus 61x61', "
         "'' using 8:(m('0D',2,'31x31','all')) w lp pt 4 lc 3 t '0D 2D(2,1) 31x31', "
         "'' using 8:(m('1D',2,'8x8','all')) w lp pt 5 lc 4 t '1D 2D(2,1) 8x8, searched', "
         "'' using 8:(m('0D',1,'12x12','all')) w lp pt 10 lc 6 t '0D 2D(1,1) 12x12, searched', "
         "'' using 8:(m('hybrid(all)',2,'6x6','all')) w lp pt 11 lc 7 t 'hybrid(all) 2D(2,1) 6x6, searched', "
         "'' using 8:(m('2D',2,'16x16','all')) w lp pt 7 lc 5 t '2D 2D(2,1) 16x16, searched'\n"},
    {.name = "10",
     .title = "hybrid(all) and 0D, 100x100, 2D(2,1), 5-point stencil",
     .run = {{K100, "hybrid(all)", NULL, 3340000}, {K100, "0D", NULL, 3340000}},
     .plot = TWO("hybrid(all)", "0D")},
    {.name = "11",
     .title = "hybrid(all) and 0D, 12x12x12, 3D(2,1), 7-point stencil",
     .run = {{K12, "hybrid(all)", NULL, SAMPLES}, {K12, "0D", NULL, SAMPLES}},
     .plot = TWO("hybrid(all)", "0D")},
    {.name = "12",
     .title = "hybrid(all) and 0D, 24x24x24, 3D(2,1), 7-point stencil",
     .run = {{K24, "hybrid(all)", NULL, SAMPLES}, {K24, "0D", NULL, SAMPLES}},
     .plot = TWO("hybrid(all)", "0D")},
    {.name = "13",
     .title = "hybrid(-2D) and hybrid(all), 24x24x24, 3D(2,1), 7-point stencil",
     .run = {{K24, "hybrid(-2D)", NULL, SAMPLES}, {K24, "hybrid(all)", NULL, SAMPLES}},
     .plot = TWO("hybrid(-2D)", "hybrid(all)")},
    {.name = "14",
     .title = "Method used by hybrid(all), 24x24x24, 3D(2,1)",
     .run = {{K24, "hybrid(all)", NULL, SAMPLES}},
     .plot = "set xlabel 'node failures'; set ylabel 'substitutions, %'; set key center right\n"
             "plot for [k=0:3] CSV every ::1 using 2:(100.*column(15-k)/($12+$13+$14+$15)) w l lw 2 lc k+1 t "
             "sprintf('%dD',k)\n"},
    {.name = "15",
     .title = "Method used by hybrid(all) up to here, 24x24x24, 3D(2,1)",
     .run = {{K24, "hybrid(all)", NULL, SAMPLES}},
     .plot = "set xlabel 'node failures'; set ylabel 'substitutions so far, %'; set key center right\n"
             "array A[4]=[0,0,0,0]; array T[4]=[0,0,0,0]\n"
             "plot for [k=0:3] CSV every ::1 using 2:(A[k+1]=A[k+1]+column(15-k),T[k+1]=T[k+1]+$12+$13+$14+$15,"
             "100.*A[k+1]/T[k+1]) w l lw 2 lc k+1 t sprintf('%dD',k)\n"},
    {.name = "20",
     .title = "Barrier and allreduce, 12x12x12, 3D(2,1)",
     .run = {{"12x12x12", "3D(2,1)", "barrier", "hybrid(all)", NULL, COLLECTIVE_SAMPLES},
             {"12x12x12", "3D(2,1)", "barrier", "hybrid(-2D)", NULL, COLLECTIVE_SAMPLES},
             {"12x12x12", "3D(2,1)", "ring", "hybrid(all)", NULL, COLLECTIVE_SAMPLES},
             {"12x12x12", "3D(2,1)", "ring", "hybrid(-2D)", NULL, COLLECTIVE_SAMPLES}},
     .plot = COLLECTIVE},
    {.name = "21",
     .title = "Barrier and allreduce, 16x8x8, 3D(2,1)",
     .run = {{"16x8x8", "3D(2,1)", "barrier", "hybrid(all)", NULL, COLLECTIVE_SAMPLES},
             {"16x8x8", "3D(2,1)", "barrier", "hybrid(-2D)", NULL, COLLECTIVE_SAMPLES},
             {"16x8x8", "3D(2,1)", "ring", "hybrid(all)", NULL, COLLECTIVE_SAMPLES},
             {"16x8x8", "3D(2,1)", "ring", "hybrid(-2D)", NULL, COLLECTIVE_SAMPLES}},
     .plot = COLLECTIVE},
    {.name = "22",
     .title = "Share of spare nodes, kept between 2 and 5 %",
     .data = figure_mixed,
     .plot =
         "set logscale x; set xlabel 'nodes'; set ylabel 'spare nodes, %'; set yrange [0:20]\n"
         "plot for [i=1:3] CSV using 4:(strcol(1) eq 'fixed' && $2==i ? $5 : 1/0) w l lw 1 lc i t sprintf('3D(%d,1)',i)"
         ", '' using 4:(strcol(1) eq 'chosen' ? $5 : 1/0) w l lw 3 lc 7 t 'chosen', 2 w l dt 2 lc 0 t '', 5 w l dt 2 "
         "lc "
         "0 t ''\n"},
    {.name = "fattree",
     .title = "Fat tree of 7x7x7 nodes, 18 per edge switch, 18 spines",
     .run = {{"7x7x7", "3D(2,1)", "7p", "hybrid(all)", "18,18", COLLECTIVE_SAMPLES},
             {"7x7x7", "3D(2,1)", "7p", "0D", "18,18", COLLECTIVE_SAMPLES},
             {"7x7x7", "3D(2,1)", "barrier", "hybrid(all)", "18,18", COLLECTIVE_SAMPLES},
             {"7x7x7", "3D(2,1)", "barrier", "0D", "18,18", COLLECTIVE_SAMPLES},
             {"7x7x7", "3D(2,1)", "ring", "hybrid(all)", "18,18", COLLECTIVE_SAMPLES},
             {"7x7x7", "3D(2,1)", "ring", "0D", "18,18", COLLECTIVE_SAMPLES}},
     .plot =
         "set xlabel 'node failures'; set ylabel 'collisions, relative to no failure'; set yrange [0:3]; set key left "
         "top\n"
         "m(s,p)=strcol(1) eq s && strcol(columns_) eq p\n"
         "P='7p barrier ring'; array B[3]=[base_7,base_b,base_r]\n"
         "plot for [i=1:3] CSV using 2:(m('hybrid(all)',word(P,i)) ? $5/B[i] : 1/0) w l lw 2 lc i t "
         "word(P,i).', hybrid(all), mean', for [i=1:3] '' using 2:(m('0D',word(P,i)) ? $5/B[i] : 1/0) w l lw 2 dt 2 lc "
         "i t word(P,i).', 0D, mean'\n"},
    {.name = "balance12",
     .title = "Mean and worst, 12x12x12, 3D(2,1), 7-point stencil",
     .run = {{K12, "0D", NULL, SAMPLES},
             {K12, "hybrid(all)", NULL, SAMPLES},
             {K12, "hybrid(-2D)", NULL, SAMPLES},
             {K12, "balance", NULL, SAMPLES}},
     .plot = FOUR},
    {.name = "balance24",
     .title = "Mean and worst, 24x24x24, 3D(2,1), 7-point stencil",
     .run = {{K24, "0D", NULL, SAMPLES},
             {K24, "hybrid(all)", NULL, SAMPLES},
             {K24, "hybrid(-2D)", NULL, SAMPLES},
             {K24, "balance", NULL, SAMPLES}},
     .plot = FOUR},
    {.name = "balance100",
     .title = "Mean and worst, 100x100, 2D(2,1), 5-point stencil",
     .run = {{K100, "0D", NULL, 3340000},
             {K100, "hybrid(all)", NULL, 3340000},
             {K100, "hybrid(-2D)", NULL, 3340000},
             {K100, "balance", NULL, 3340000}},
     .plot = FOUR},
    {.name = NULL},
};
