# gnuplot -e "out='png'" plot.gp, or out='svg': the figures of docs/collectives.md from scale.csv
set datafile separator ','
if (out eq 'svg') set terminal svg size 720,480 font 'sans,12'; else set terminal pngcairo size 720,480 font 'sans,11'
set logscale x 2
set xlabel 'members'
set xrange [12:90000]
set format x '%.0f'
set xtics (16, 64, 256, 1024, 4096, 16384, 65536)
set grid
set key top left
row(op, dead) = sprintf("< grep '^%s,[0-9]*,%d,0,' scale.csv", op, dead)

set output 'discovery.'.out
set ylabel 'steps'
set yrange [0:120]
set title 'Liveness discovery: steps against members and share of dead ones'
plot for [d in '0 25 50'] row('probing', d+0) using 2:6 with linespoints dashtype 2 title sprintf('asking one after the other, %s%% dead', d), \
     for [d in '0 25 50'] row('discovery tree', d+0) using 2:6 with linespoints linewidth 2 title sprintf('tree, %s%% dead', d)

set output 'creation.'.out
set yrange [0:40]
set title 'Creation of a group by its members: steps, and messages of the busiest member'
plot row('discovery tree', 0) using 2:6 with linespoints title 'tree: steps', \
     row('discovery tree', 0) using 2:8 with linespoints dashtype 2 title 'tree: most messages of one member', \
     row('discovery cube', 0) using 2:6 with linespoints title 'cube: steps', \
     row('discovery cube', 0) using 2:8 with linespoints dashtype 2 title 'cube: most messages of one member'

set output 'shrink-agree.'.out
set yrange [0:80]
set title 'Shrink and agree: the collective form (cube) and that of the paper (tree)'
plot row('discovery cube', 0) using 2:6 with linespoints title 'shrink, cube', \
     row('discovery tree', 0) using 2:6 with linespoints title 'shrink, tree', \
     row('discovery tree', 25) using 2:6 with points title 'shrink, tree, 25% dead', \
     row('agree cube', 0) using 2:6 with linespoints title 'agree, cube', \
     row('agree tree', 0) using 2:6 with linespoints title 'agree, tree', \
     row('agree tree', 25) using 2:6 with points title 'agree, tree, 25% dead', \
     "< grep '^discovery cube,[0-9]*,0,1,' scale.csv" using 2:6 with points pointtype 9 title 'shrink, cube, one dies meanwhile', \
     "< grep '^agree cube,[0-9]*,0,1,' scale.csv" using 2:6 with points pointtype 11 title 'agree, cube, one dies meanwhile'
