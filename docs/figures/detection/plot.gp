# gnuplot -e "out='png'" plot.gp, or out='svg': the figures of docs/detection.md from nodes.csv and loss.csv
set datafile separator ','
set datafile missing ''
if (out eq 'svg') set terminal svg size 720,480 font 'sans,12'; else set terminal pngcairo size 720,480 font 'sans,11'
set grid
set key top left
set ylabel 'milliseconds until the last live node knows'
set logscale y

set output 'nodes.'.out
set logscale x
set xlabel 'nodes'
set xrange [70:140000]
set yrange [1:10000]
set title 'From the failure to the view without it at all nodes'
row(what) = sprintf("< grep '^%s,' nodes.csv", what)
plot row('killed') using 2:3 with linespoints title 'one process killed', \
     row('tenth') using 2:3 with linespoints title 'a tenth of all killed at once', \
     row('off') using 2:3 with linespoints title 'one node switched off'

set output 'loss.'.out
unset logscale x
set xlabel 'per cent of all messages lost'
set xrange [0:31]
set yrange [1:20000]
set title 'One failure among 1,000 nodes that lose messages'
plot 'loss.csv' using 1:3 every ::1 with linespoints title 'process killed', \
     'loss.csv' using 1:4 every ::1 with linespoints title 'node switched off'
