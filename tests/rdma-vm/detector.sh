# Runs in the virtual machine: every mode of tests/multi/helpers over RDMA devices. The first that fails ends it.
export KEEL_HELPERS_HOST=10.2.0.%d KEEL_HELPERS_PROBE=verbs KEEL_TEST_PATIENCE=50
export KEEL_HELPERS_CUT="/usr/bin/ip link set p%d nomaster" KEEL_HELPERS_HEAL="/usr/bin/ip link set p%d master br0"
export KEEL_HELPERS_LOSE="/usr/bin/tc qdisc add dev p%d root netem loss 20%"
export KEEL_HELPERS_DELAY="/usr/bin/tc qdisc add dev p%d root netem delay 600ms" KEEL_HELPERS_STRAIGHT="/usr/bin/tc qdisc del dev p%d root"
# What RoCE sends (UDP port 4791) is dropped on node %d's port of the bridge, all else passes.
drop="protocol ip u32 match ip dport 4791 0xffff action drop"
export KEEL_HELPERS_BREAK="p=p%d; /usr/bin/tc qdisc add dev \$p clsact && /usr/bin/tc filter add dev \$p ingress $drop && /usr/bin/tc filter add dev \$p egress $drop"
for mode in kill freeze blind pause cut loss delay fallback; do
    echo "== $mode"
    helpers $mode || exit 1
done
