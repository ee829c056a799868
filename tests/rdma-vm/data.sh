# Runs in the virtual machine: the transport's contract over libfabric's verbs provider, then jobs whose nodes use RDMA devices for
# everything, and lose one of them. The first that fails ends it.
export KEEL_BED_NET=10.2 HOME=/tmp USER=root

die()
{
    echo "FAILED: $*"
    cat /tmp/err /tmp/log
    exit 1
}

# The processes of node $1: its agent and its ranks.
processes()
{
    sed -n "s/.*\"node\":$1,\"event\":\"\(start\|rank_start\)\".*\"pid\":\([0-9]*\),.*/\2/p" /tmp/log
}

# at: the time, to a millisecond or so: its clock has a hundredth in it, and has just turned. Takes no process.
look_at_clock()
{
    read was rest </proc/uptime
    at=$was
    while [ $at = $was ]; do read at rest </proc/uptime; done
}

# lose WHAT MARK BLOW PROGRAM...: a job that is dealt BLOW when its log has MARK. Node 1 dies of it, and the spare takes its place.
# BLOW may use $victims, the processes of node 1.
lose()
{
    what=$1 mark=$2 blow=$3
    shift 3
    : >/tmp/log
    keelrun --nodes 3 --spares 1 -n 3 --provider auto --event-log /tmp/log "$@" >/tmp/out 2>/tmp/err &
    job=$!
    until grep -q "$mark" /tmp/log; do
        kill -0 $job 2>/dev/null || die "the job ended before $mark"
    done
    victims=$(processes 1)
    look_at_clock
    eval "$blow"
    wait $job || die "the job ended with $?"
    [ $(grep -c '"probe":"verbs","provider":"verbs"' /tmp/log) = 4 ] || die "not all went by devices"
    grep -q '"event":"substituted","rank":1,' /tmp/log || die "no spare took the rank"
    grep -q 'exit code 0 after the loss of 1 node$' /tmp/err || die "keelrun does not say how the job ended"
    sed -n 's/.*"t_ns":\([0-9]*\),.*"event":"view".*"dead_node":1.*/\1/p' /tmp/log | sort -n | tail -1 |
        awk -v at=$at -v what="$what" -v verdict="$(sed -n '/"event":"verdict","about":1/{s/.*"evidence":"\([a-z]*\)".*/\1/p;q}' /tmp/log)" \
            '{ printf "%s: %s, in the view of all %.0f ms later\n", what, verdict, $1 / 1e6 - 1000 * at }'
}

echo "== transport"
KEEL_TEST_VERBS="10.2.0.2 10.2.0.3" test_transport || exit 1
KEEL_TEST_VERBS="10.2.0.2 10.2.0.3" test_transport_end || exit 1

# refuse WHAT LIMIT OPTION: what a user may not have is one line of keelrun's, before anything starts.
refuse()
{
    /usr/bin/setpriv --reuid 1000 --regid 1000 --clear-groups sh -c "ulimit -l $2; exec keelrun --nodes 2 -n 2 $3 torture 1 1 16 3" >/tmp/out 2>/tmp/err
    code=$?
    sed "s/^/$2 KiB: /" /tmp/err
    [ $code = 1 ] && [ $(grep -c . /tmp/err) = 1 ] && grep -q "^keelrun: node [01]: .*$1" /tmp/err && [ ! -s /tmp/out ] || die "$3 ended with $code"
}

echo "== without permission"
echo "user:x:1000:1000::/tmp:/bin/sh" >>/etc/passwd
chmod 1777 /tmp /dev/shm
chmod 600 /dev/infiniband/*
refuse 'permission' 64 '--probe verbs'
refuse 'permission' 64 '--provider verbs'
chmod 666 /dev/infiniband/*
refuse 'ulimit -l' 64 '--probe verbs'
refuse 'ulimit -l' 64 '--provider verbs'
refuse 'ulimit -l' 2000 '--provider verbs'
rm -f /tmp/out /tmp/err

echo "== puts, gets, accumulates, tasks"
second='"number":2,"name":"phase"'
lose "a node's processes killed" "$second" 'kill -9 $victims' torture 7 5 3000 30
grep 'all right' /tmp/out || die "no result"
lose "a node cut off" "$second" '/usr/bin/ip link set p3 nomaster' torture 8 4 300 30
/usr/bin/ip link set p3 master br0
grep 'all right' /tmp/out || die "no result"

echo "== Hartree-Fock"
lose "a node's processes killed" '"number":2,.*scf_half' 'kill -9 $victims' \
    keel-scf /usr/bin/water.xyz --basis-file /usr/bin/sto-3g.nw
grep '^Total energy: *-74.963146[67]' /tmp/out || { cat /tmp/out; die "another energy than -74.963147"; }

# The kernel takes a device away when nobody has it open any more.
echo "== a device taken away"
lose "a device taken away" "$second" '/usr/bin/rdma link delete rx3 & deleting=$!' torture 9 4 300 30
grep 'all right' /tmp/out || die "no result"
grep 'the RDMA device of this node was taken away' /tmp/err || die "nobody says that the device is gone"
wait $deleting
[ ! -e /sys/class/infiniband/rx3 ] || die "the device is still there"
