"""A line of the reference table on 1, 2, 4 and 7 ranks, or as many as --ranks says: undisturbed, and with a node killed
in the second iteration, substituted and degraded. The energy must be the reference's within 1e-6 and the undisturbed
run's within 1e-8."""
import argparse
import contextlib
import io
import pathlib
import sys

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "scripts"))
import demo  # noqa: E402


def energy_of(options, kill):
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        code, energy, killed, _ = demo.run_and_kill(options, kill) if kill is not None else demo.run(options, None)
    if code != 0 or energy is None or (kill is not None and killed is None):
        print(text.getvalue())
        sys.exit(f"{options.molecule} {options.basis} on {options.nodes}, kill {kill}: code {code}, killed {killed}")
    return energy


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("molecule")
    parser.add_argument("basis")
    parser.add_argument("--ranks", default="1,2,4,7")
    options = parser.parse_args()
    name = options.molecule
    options.molecule = str(TOP / "apps" / "scf" / "molecules" / (name + ".xyz"))
    options.bed = "loopback"
    reference = demo.REFERENCE[(name, options.basis)]
    worst = 0.0
    for options.nodes in map(int, options.ranks.split(",")):
        options.on_failure = "substitute"
        quiet = energy_of(options, None)
        results = [quiet, energy_of(options, options.nodes // 2)]
        if options.nodes > 1:  # one node less than one is none
            options.on_failure = "degrade"
            results.append(energy_of(options, 0))
        for energy in results:
            worst = max(worst, abs(energy - quiet))
            if abs(energy - reference) > 1e-6 or abs(energy - quiet) > 1e-8:
                sys.exit(f"{name} {options.basis} on {options.nodes} ranks: {results}, reference {reference}")
    print(f"{name} {options.basis}: all within {worst:.1e} Hartree of the undisturbed runs")


if __name__ == "__main__":
    main()
