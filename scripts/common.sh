# Shared by ./check, ./demo and .ci/run. Source it from the top of the tree.

# need_packages GROUP...: install the packages of these groups of packages.txt, or name those that are missing.
need_packages()
{
    local missing=() group package
    for group in "$@"; do
        for package in $(sed -n "s/^$group: //p" packages.txt); do
            dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q '^install ok installed' || missing+=("$package")
        done
    done
    [ ${#missing[@]} -eq 0 ] && return 0
    if [ "$(id -u)" -ne 0 ]; then
        echo "missing Debian packages: ${missing[*]}" >&2
        echo "install them as root: apt-get install ${missing[*]}" >&2
        return 2
    fi
    echo "installing: ${missing[*]}"
    local log
    log=$(mktemp)
    if ! { DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "${missing[@]}" >"$log" 2>&1 ||
        { apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "${missing[@]}"; } >"$log" 2>&1; }; then
        cat "$log" >&2
        rm -f "$log"
        return 2
    fi
    rm -f "$log"
}

# configure DIR [OPTION...]: make a build folder, or keep the one that is there.
configure()
{
    local dir=$1
    shift
    [ -f "$dir/build.ninja" ] && return 0
    local said
    said=$(meson setup "$dir" "$@" 2>&1) || { echo "$said" | tail -20 >&2; return 1; }
}

# run_tests DIR [OPTION...]: meson test, patient with a busy machine, as its time limits are for what hangs; what fails is run once
# more, alone. Programs that race real clocks fail when the machine itself stands still for a second (virtual machines do); what
# fails twice has failed. The log names both. What came to its limit has failed: it hung, and would take as long once more.
run_tests()
{
    local dir=$1 failed hung
    shift
    # Started in the background the shell ignores SIGINT, and so would the programs whose Ctrl-C is tested.
    env --default-signal meson test -C "$dir" --no-rebuild --print-errorlogs --timeout-multiplier 5 "$@" && return 0
    mapfile -t failed < <(python3 scripts/summarize.py --failed "$dir/meson-logs/testlog.json")
    mapfile -t hung < <(python3 scripts/summarize.py --hung "$dir/meson-logs/testlog.json")
    [ ${#hung[@]} -eq 0 ] || echo "hung, and not run once more: ${hung[*]}"
    [ ${#failed[@]} -gt 0 ] || return 1
    echo "once more, alone: ${failed[*]}"
    env --default-signal meson test -C "$dir" --no-rebuild --print-errorlogs --timeout-multiplier 5 --logbase testlog-again --num-processes 1 "${failed[@]}" &&
        [ ${#hung[@]} -eq 0 ]
}

# logs_of DIR: the logs of the last run_tests, for scripts/summarize.py
logs_of()
{
    echo "$1/meson-logs/testlog.json+$1/meson-logs/testlog-again.json"
}
