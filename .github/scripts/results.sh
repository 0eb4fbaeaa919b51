#!/usr/bin/env bash
# The branch `results` holds the results of all machines, a folder each.
#
#   results.sh fetch           bring them into results/
#   results.sh push MACHINE    take the folder of this machine there
#
# Only its own machine writes into a folder, so that pushes never conflict: who comes second starts again from the
# branch as it is then. asv's benchmarks.json is common to all; the one pushed last stands, as with `asv run`.
# TOKEN, where it is set, is what github.com is asked with.
set -euo pipefail
branch=results
there=refs/remotes/origin/$branch
tries=${TRIES:-8}

if [ -n "${TOKEN:-}" ]; then
    export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0="http.${GITHUB_SERVER_URL:-https://github.com}/.extraheader"
    GIT_CONFIG_VALUE_0="AUTHORIZATION: basic $(printf 'x-access-token:%s' "$TOKEN" | base64 | tr -d '\n')"
    export GIT_CONFIG_VALUE_0
fi

# True if the branch is there and fetched; an origin that does not answer ends the script.
fetched() {
    local code=0
    git ls-remote --exit-code --heads origin "refs/heads/$branch" >/dev/null || code=$?
    [ "$code" -eq 2 ] && return 1
    [ "$code" -eq 0 ] || exit "$code"
    git fetch --quiet --depth 1 origin "+refs/heads/$branch:$there" || exit
}

case ${1:-} in
fetch)
    mkdir -p results
    if ! fetched; then echo "There is no branch $branch yet."; exit; fi
    links=$(git ls-tree -r --full-tree "$there" | sed -n 's/^120000[^\t]*\t//p')
    [ -z "$links" ] || { printf 'The branch %s holds links, which results never do: %s\n' "$branch" "$links" >&2; exit 1; }
    git archive "$there" | tar -x -C results
    ;;
push)
    machine=${2:?name the machine}
    [ -d "results/$machine" ] || { echo "There are no results of $machine to push."; exit 0; }
    scratch=$(mktemp -d)
    trap 'rm -rf "$scratch"; git worktree prune' EXIT
    for try in $(seq "$tries"); do
        if "$0" once "$machine" "$scratch/tree"; then exit 0; fi
        echo "Try $try of $tries failed; if another machine was first, the next one takes its results along." >&2
        sleep $((RANDOM % 3 + try / 2))
    done
    exit 1
    ;;
once)
    # One try, in a process of its own: bash looks at no failure in a function that an `if` calls.
    machine=$2 tree=$3
    rm -rf "$tree"
    git worktree prune
    git worktree add --quiet --detach "$tree" HEAD
    if fetched; then
        git -C "$tree" checkout --quiet --detach "$there"
    else
        git -C "$tree" checkout --quiet --orphan "new-$branch-$$"
        git -C "$tree" rm -rqf .
    fi
    mkdir -p "$tree/$machine"
    cp -R "results/$machine/." "$tree/$machine/"
    [ ! -f results/benchmarks.json ] || cp results/benchmarks.json "$tree/"
    git -C "$tree" add --all .
    if git -C "$tree" diff --cached --quiet; then echo "Nothing new."; exit 0; fi
    git -C "$tree" -c user.name=nightly -c user.email=nightly@users.noreply.github.com \
        commit --quiet -m "Results of $machine"
    git -C "$tree" push --quiet origin "HEAD:refs/heads/$branch"
    ;;
*)
    sed -n '2,9s/^# \{0,1\}//p' "$0" >&2
    exit 2
    ;;
esac
