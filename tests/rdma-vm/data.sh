# Runs in the virtual machine: the transport's contract over libfabric's verbs provider, then a job whose nodes use RDMA devices for everything.
echo "== transport"
KEEL_TEST_VERBS="10.2.0.2 10.2.0.3" test_transport || exit 1
echo "== puts, gets, accumulates, tasks"
export KEEL_BED_NET=10.2 HOME=/tmp USER=root
keelrun --nodes 3 --spares 1 -n 3 --provider auto --event-log /tmp/log torture 7 3 3000 30 || exit 1
[ $(grep -c '"probe":"verbs","provider":"verbs"' /tmp/log) = 4 ] || { cat /tmp/log; exit 1; }
