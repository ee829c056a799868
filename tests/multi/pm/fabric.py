"""libfabric beside other users of it: settings that are meant for another program or for MPI do not keep Keel from what
it asks for by name, nobody else's view of libfabric is changed, and no process of a job waits for libraries that
measure the clock."""
import glob
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../lib"))
import keeltest
from keeltest import Skip, run

ALONE, BESIDE = os.environ["KEEL_FABRIC"], os.environ["KEEL_FABRIC_BESIDE"]


def run_with(program, *settings):
    return run(["-n", "2", "--nodes", "2", program], env=dict(os.environ, **dict(s.split("=", 1) for s in settings)))


def test_fabric_settings_of_another_stack_do_not_keep_a_job_from_starting():
    for setting in ("FI_PROVIDER=efa", "FI_PROVIDER=psm2", "FI_PROVIDER=^tcp,udp", "FI_PROVIDER=verbs;ofi_rxm", "FI_PROVIDER=nosuch",
                    "FI_TCP_IFACE=nosuch0", "FI_UDP_IFACE=nosuch0", "FI_TCP_RX_SIZE=1", "FI_TCP_TX_SIZE=1", "FI_FABRIC=x", "FI_DOMAIN=y",
                    "FI_ADDR_FORMAT=FI_ADDR_EFA", "FI_UNIVERSE_SIZE=1"):
        code, out, err = run_with(ALONE, setting)
        assert code == 0 and not err, (setting, code, err)


def test_fabric_of_the_program_itself_is_filtered_as_its_user_wants():
    for provider in ("udp", "sockets"):
        code, out, err = run_with(BESIDE, "FI_PROVIDER=" + provider)
        assert code == 0 and not err, (provider, code, err)


def test_fabric_loads_no_library_that_measures_the_clock():
    if any(glob.glob("/sys/class/infiniband/%s*" % name) for name in ("qib", "hfi")):
        raise Skip("has the device")
    code, out, err = run_with(ALONE)
    assert code == 0 and out == "awake\n" * 2, (code, out, err)
    code, out, err = run(["-n", "1", "sh", "-c", "grep -c /libinfinipath. /proc/$PPID/maps; grep -c /libfabric. /proc/$PPID/maps"])
    assert out.split()[0] == "0" and int(out.split()[1]) > 0, (code, out, err)


keeltest.main(globals())
