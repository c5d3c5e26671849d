#!/bin/sh
# Installs anna-relay for this user, and takes it back again. Safe to run twice; no root. See --help.
#
# Everything it puts somewhere is noted in a manifest in Anna's state folder, with its checksum and before it is put
# there: so it never replaces or removes what is not its own or was changed since.
set -eu

usage() {
    cat <<'END'
usage: ./install.sh [--prefix DIR] [--binary PATH] [--force] [--dry-run]
       ./install.sh --uninstall [--dry-run]

Builds anna-relay and installs, for this user alone: the program, the launchers anna-brain, anna-tg and anna-day, man
pages, completions, what the two sessions have to know, a systemd user unit, and a first anna.toml where there is none.
It starts nothing. Run it again to update.

--prefix DIR   where to [default: ~/.local, or where it was installed before]
--binary PATH  install this program instead of building one
--force        replace files that are not from here or were changed; a copy is kept, and put back by --uninstall
--dry-run      print each step, touch nothing
--uninstall    take back what was put there; anna.toml and Anna's state stay
END
}

fail() {
    printf 'error: %s\nhint: %s\n' "$1" "$2" >&2
    exit "${3-1}"
}

would='' changes=0
step() {
    changes=$((changes + 1))
    printf '%s%s\n' "$would" "$*"
}
note() { printf 'note: %s\n' "$*"; }

# --- where things are ---

# The folder $1 names, or $2: as the XDG specification wants it, one that is not absolute counts as not set.
folder() {
    case $1 in
    /*) printf '%s\n' "${1%/}" ;;
    *) printf '%s\n' "$2" ;;
    esac
}

absolute() {
    case $1 in
    /*) printf '%s\n' "$1" ;;
    *) printf '%s\n' "$PWD/$1" ;;
    esac
}

find_places() {
    case ${HOME-} in
    /*) ;;
    *) fail 'installing: there is no home folder' "set \$HOME" ;;
    esac
    here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
    state=$(folder "${XDG_STATE_HOME-}" "$HOME/.local/state")/anna
    manifest=$state/install.manifest
    usual=$HOME/.local
    installed=''
    [ ! -f "$manifest" ] || installed=$(sed -n 's/^prefix //p' "$manifest" | tail -n 1)
    if [ -z "$prefix" ]; then
        prefix=${installed:-$usual}
    fi
    prefix=$(absolute "$prefix")
    prefix=${prefix%/}
    if [ "$mode" = install ] && [ -n "$installed" ] && [ "$installed" != "$prefix" ]; then
        fail "installing in $prefix: it is installed in $installed already" \
            "take that back first (--uninstall), or give --prefix $installed"
    fi
    case $HOME$prefix$state in
    *'
'*) fail 'installing: a folder has a line break in its name' 'choose another one with --prefix' ;;
    esac
    bin=$prefix/bin
    data=$prefix/share
    [ "$prefix" != "$usual" ] || data=$(folder "${XDG_DATA_HOME-}" "$usual/share")
    configs=$(folder "${XDG_CONFIG_HOME-}" "$HOME/.config")
    unit=$configs/systemd/user/anna-relay.service
    config=$configs/anna/anna.toml
    if [ -n "${ANNA_CONFIG-}" ]; then
        config=$(absolute "$ANNA_CONFIG")
    elif ! exists "$config" && exists "$HOME/.config/anna/anna.toml"; then
        config=$HOME/.config/anna/anna.toml
    fi
}

exists() { [ -e "$1" ] || [ -L "$1" ]; }

# --- the manifest: lines `prefix DIR`, `dir PATH`, `file SUM PATH`, `kept PATH` ---

record() { [ "$dry_run" = yes ] || printf '%s\n' "$1" >>"$manifest"; }

sum_of() { cksum <"$1" | awk '{ print $1 ":" $2 }'; }

# The checksums that are on record for a file; a line each.
sums() {
    [ -f "$manifest" ] || return 0
    P=$1 awk 'sub(/^file /, "") { at = index($0, " "); if (substr($0, at + 1) == ENVIRON["P"]) print substr($0, 1, at - 1) }' \
        "$manifest"
}

# Whether a file is as it was put there.
is_ours() { [ -f "$1" ] && [ ! -L "$1" ] && sums "$1" | grep -qxF -- "$(sum_of "$1")"; }

has_copy() { [ -f "$manifest" ] && grep -qxF -- "kept $1" "$manifest"; }

copy_of() { printf '%s.before-anna-relay\n' "$1"; }

# The paths in the lines of one sort.
paths() {
    [ -f "$manifest" ] || return 0
    case $1 in
    file) sed -n 's/^file [^ ]* //p' "$manifest" ;;
    *) sed -n "s/^$1 //p" "$manifest" ;;
    esac
}

# --- installing ---

# Makes a folder and those above it, and notes which are new.
make_dir() {
    [ ! -d "$1" ] || return 0
    make_dir "$(dirname -- "$1")"
    [ "$dry_run" = no ] || return 0
    mkdir -- "$1" || fail "making the folder $1" 'see what stands in its way'
    printf 'dir %s\n' "$1" >>"$work/dirs"
    [ ! -f "$manifest" ] || record "dir $1"
}

# Puts the file $1 at $2 with mode $3; `program` as $4: an older one may be replaced, wherever it came from.
place() {
    if cmp -s -- "$1" "$2" && [ ! -L "$2" ]; then
        if is_ours "$2"; then printf '%s\n' "$2" >>"$work/placed"; else note "$2 is there already"; fi
        return 0
    fi
    [ ! -d "$2" ] || fail "installing $2: there is a folder of that name" 'move it away'
    if exists "$2" && ! is_ours "$2"; then
        if [ "$force" = yes ]; then
            keep_copy "$2"
        elif [ "${4-}" != program ] || [ -L "$2" ]; then
            why='is not from here'
            [ -z "$(sums "$2")" ] || why='was changed since it was installed'
            note "$2 $why: left as it is (--force replaces it and keeps a copy)"
            printf '%s\n' "$2" >>"$work/placed"
            return 0
        fi
    fi
    step "install $2"
    printf '%s\n' "$2" >>"$work/placed"
    [ "$dry_run" = no ] || return 0
    make_dir "$(dirname -- "$2")"
    record "file $(sum_of "$1") $2"
    # A running program keeps its old file; nobody ever sees half of a new one.
    { cp -- "$1" "$2.new$$" && chmod "$3" "$2.new$$" && mv -f -- "$2.new$$" "$2"; } || {
        rm -f -- "$2.new$$"
        fail "installing $2" 'see whether the folder can be written and the disk has room'
    }
}

# The first copy is the person's; a later one would be of something of ours.
keep_copy() {
    ! has_copy "$1" || return 0
    step "keep a copy, $(copy_of "$1")"
    [ "$dry_run" = no ] || return 0
    ! exists "$(copy_of "$1")" || fail "keeping a copy of $1: there is a $(copy_of "$1") already" 'move it away'
    record "kept $1"
    cp -p -P -- "$1" "$(copy_of "$1")"
}

check_toolchain() {
    need=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
    otherwise='or give a program that is built already: --binary PATH'
    if ! command -v cargo >/dev/null || ! command -v rustc >/dev/null; then
        fail 'building anna-relay: there is no Rust toolchain' "install Rust $need or later, $otherwise"
    fi
    have=$(rustc --version | sed -n 's/^rustc \([0-9][0-9]*\.[0-9][0-9]*\).*/\1/p')
    [ -n "$have" ] || fail 'building anna-relay: rustc does not say its version' "mend the Rust toolchain, $otherwise"
    if [ "${have%%.*}" -lt "${need%%.*}" ] || {
        [ "${have%%.*}" -eq "${need%%.*}" ] && [ "${have#*.}" -lt "${need#*.}" ]
    }; then
        fail "building anna-relay: it needs Rust $need, and this is $have" "update it (rustup update), $otherwise"
    fi
}

# Sets `program`: what will be installed; in a dry run none where it is not built.
get_program() {
    program=$binary
    if [ -n "$program" ]; then
        { [ -f "$program" ] && "$program" --version 2>/dev/null | grep -q '^anna-relay '; } ||
            fail "installing $program: it is not the program anna-relay" 'give --binary its path'
        return 0
    fi
    check_toolchain
    step 'build the program: cargo build --release --locked'
    changes=$((changes - 1))
    [ "$dry_run" = no ] || return 0
    cargo build --release --locked --target-dir "$here/target" || fail 'building anna-relay' 'see what cargo says above'
    program=$here/target/release/anna-relay
    [ -x "$program" ] || fail "building anna-relay: there is no $program afterwards" 'unset CARGO_BUILD_TARGET'
}

# What the program says about itself.
place_generated() {
    man=$prefix/share/man/man1
    if [ -z "$program" ]; then
        step "install the man pages in $man"
        step "install completions for bash, zsh and fish in $data"
        return 0
    fi
    "$program" man "$work/man"
    for page in "$work"/man/*.1; do
        place "$page" "$man/${page##*/}" 644
    done
    for shell in bash zsh fish; do
        "$program" completions "$shell" >"$work/$shell"
    done
    place "$work/bash" "$data/bash-completion/completions/anna-relay" 644
    place "$work/zsh" "$data/zsh/site-functions/_anna-relay" 644
    place "$work/fish" "$data/fish/vendor_completions.d/anna-relay.fish" 644
}

# A word in double quotes, as systemd reads it.
quoted() { printf '%s\n' "$1" | sed 's/[\\"]/\\&/g; s/%/%%/g; s/^/"/; s/$/"/'; }

# Where things are, as far as the service would not find it by itself.
service_environment() {
    for name in ANNA_CONFIG XDG_CONFIG_HOME XDG_STATE_HOME CLAUDE_CONFIG_DIR; do
        case $name in
        ANNA_CONFIG) value=${ANNA_CONFIG:+$config} ;;
        XDG_CONFIG_HOME) value=${XDG_CONFIG_HOME-} default=$HOME/.config ;;
        XDG_STATE_HOME) value=${XDG_STATE_HOME-} default=$HOME/.local/state ;;
        *) value=${CLAUDE_CONFIG_DIR-} default=$HOME/.claude ;;
        esac
        case $value in
        /*) [ "$value" = "${default-}" ] || printf 'Environment=%s\n' "$(quoted "$name=$value")" ;;
        esac
    done
}

place_unit() {
    if ! command -v systemctl >/dev/null; then
        note "there is no systemd here, so no unit: \`anna-relay bridge\` runs the relay in a terminal"
        return 0
    fi
    start='%h/.local/bin/anna-relay'
    [ "$prefix" = "$usual" ] || start=$(quoted "$bin/anna-relay")
    START="ExecStart=$start bridge" MORE=$(service_environment) awk '
        /^ExecStart=/ { print ENVIRON["START"]; if (ENVIRON["MORE"] != "") print ENVIRON["MORE"]; next }
        { print }' contrib/systemd/anna-relay.service >"$work/unit"
    before=$changes
    place "$work/unit" "$unit" 644
    if [ "$changes" != "$before" ]; then reload_systemd; fi
}

has_user_manager() { command -v systemctl >/dev/null && systemctl --user show-environment >/dev/null 2>&1; }

reload_systemd() {
    has_user_manager || return 0
    step 'have systemd read its units again: systemctl --user daemon-reload'
    [ "$dry_run" = yes ] || systemctl --user daemon-reload || note 'systemd did not: see what it says above'
}

place_config() {
    ! exists "$config" || return 0
    step "write a first $config"
    [ "$dry_run" = no ] || return 0
    make_dir "$(dirname -- "$config")"
    # Other tools of Anna keep their sections in it, secrets perhaps.
    (umask 077 && cp -- config/anna.toml "$config") || fail "writing $config" 'see what stands in its way'
}

# Files of an older version that this one does not have any more.
remove_stale() {
    paths file | sort -u >"$work/known"
    while IFS= read -r path; do
        grep -qxF -- "$path" "$work/placed" || take_back "$path"
    done <"$work/known"
}

# Only what still holds; the same as before where nothing changed.
tidy_manifest() {
    {
        printf 'prefix %s\n' "$prefix"
        paths dir | LC_ALL=C sort -u | while IFS= read -r path; do
            [ ! -d "$path" ] || printf 'dir %s\n' "$path"
        done
        paths kept | LC_ALL=C sort -u | sed 's/^/kept /'
        paths file | LC_ALL=C sort -u | while IFS= read -r path; do
            if is_ours "$path"; then
                printf 'file %s %s\n' "$(sum_of "$path")" "$path"
            elif exists "$path"; then
                printf 'file %s %s\n' "$(sums "$path" | tail -n 1)" "$path"
            fi
        done
    } >"$work/manifest"
    cmp -s "$work/manifest" "$manifest" || { cp "$work/manifest" "$manifest.new" && mv -f "$manifest.new" "$manifest"; }
}

set_up() {
    if [ -z "$program" ]; then
        note "then \`anna-relay setup\` runs, if relay.enabled is true in $config"
    elif [ "$dry_run" = yes ] && ! exists "$config"; then
        say_next
    elif ! "$program" check --json >"$work/check"; then
        note "then correct it, and run \`anna-relay setup\`"
    elif grep -q '"enabled": true' "$work/check"; then
        printf '%srun anna-relay setup\n' "$would"
        [ "$dry_run" = yes ] || "$bin/anna-relay" setup || fail 'setting up the two sessions' \
            "see what it says above, then run \`anna-relay setup\`; all else is installed"
    else
        say_next
    fi
}

say_next() {
    service=''
    ! has_user_manager || service=', or as a service: systemctl --user enable --now anna-relay'
    cat <<END
next: 1. set enabled = true under [relay] in $config
      2. anna-relay setup
      3. anna-brain in one terminal, anna-tg in another
      4. anna-relay bridge in a third$service
END
}

say_notes() {
    found=$(command -v anna-relay || true)
    case :$PATH: in
    *":$bin:"*)
        [ "${found:-$bin/anna-relay}" = "$bin/anna-relay" ] || note "your shell finds another anna-relay first: $found"
        ;;
    *) note "$bin is not on your PATH: add it there" ;;
    esac
    [ -z "${SUDO_USER-}" ] || note "this is for the user whose home is $HOME; for your own, run it without sudo"
    if has_user_manager && systemctl --user is-active --quiet anna-relay; then
        note 'the bridge runs; to have it run this version: systemctl --user restart anna-relay'
    fi
}

install_all() {
    cd -- "$here"
    get_program
    if [ "$dry_run" = no ]; then
        (umask 077 && make_dir "$state")
        if [ ! -f "$manifest" ]; then
            { printf 'prefix %s\n' "$prefix" && cat "$work/dirs"; } >"$manifest"
        fi
    fi
    if [ -n "$program" ]; then place "$program" "$bin/anna-relay" 755 program; else step "install $bin/anna-relay"; fi
    for launcher in anna-brain anna-tg anna-day; do
        place "contrib/bin/$launcher" "$bin/$launcher" 755
    done
    for prompt in brain bot; do
        place "contrib/prompts/$prompt.md" "$data/anna-relay/prompts/$prompt.md" 644
    done
    place_generated
    place_unit
    place_config
    [ -z "$program" ] || remove_stale
    [ "$dry_run" = yes ] || tidy_manifest
    [ "$changes" != 0 ] || echo 'all is installed already'
    say_notes
    set_up
}

# --- taking it back ---

# Removes a file if it is as it was put there, and puts back what was there before.
take_back() {
    if is_ours "$1"; then
        step "remove $1"
        [ "$dry_run" = yes ] || rm -f -- "$1"
    elif exists "$1"; then
        note "$1 was changed since it was installed: left as it is"
        return 0
    fi
    if has_copy "$1" && exists "$(copy_of "$1")"; then
        step "put back what was at $1 before"
        [ "$dry_run" = yes ] || mv -- "$(copy_of "$1")" "$1"
    fi
}

stop_service() {
    [ -n "$unit" ] && has_user_manager || return 0
    systemctl --user is-enabled --quiet anna-relay 2>/dev/null || systemctl --user is-active --quiet anna-relay || return 0
    step 'stop the service: systemctl --user disable --now anna-relay'
    [ "$dry_run" = yes ] || systemctl --user disable --now anna-relay || note 'systemd did not: see what it says above'
}

# What setup put into Claude Code's settings calls the program, so it goes first.
undo_setup() {
    claude=${CLAUDE_CONFIG_DIR:-$HOME/.claude}
    [ -e "$claude/anna-relay-setup.json" ] || return 0
    program=$(paths file | grep '/anna-relay$' | grep '/bin/' | tail -n 1)
    if [ -z "$program" ] || [ ! -x "$program" ]; then
        note "what \`anna-relay setup\` wrote in $claude stays: the program that could take it back is gone"
        return 0
    fi
    step 'take back what setup did: anna-relay setup --undo'
    [ "$dry_run" = yes ] || "$program" setup --undo || note "see above for what of it stays in $claude"
}

uninstall_all() {
    if [ ! -f "$manifest" ]; then
        echo "nothing to take back: there is no $manifest"
        return 0
    fi
    unit=$(paths file | grep '/systemd/user/anna-relay\.service$' | tail -n 1)
    stop_service
    undo_setup
    paths file | LC_ALL=C sort -u >"$work/known"
    while IFS= read -r path; do
        take_back "$path"
    done <"$work/known"
    [ -z "$unit" ] || reload_systemd
    # The innermost first; one with anything else in it stays.
    paths dir | LC_ALL=C sort -ru >"$work/dirs"
    [ "$dry_run" = yes ] || rm -f -- "$manifest"
    while IFS= read -r path; do
        [ "$dry_run" = yes ] || rmdir -- "$path" 2>/dev/null || true
    done <"$work/dirs"
    ! exists "$config" || note "$config stays"
    [ ! -d "$state/relay" ] || note "$state stays, the hand-offs in it"
}

# --- what was asked ---

prefix='' binary='' mode=install dry_run=no force=no
while [ $# -gt 0 ]; do
    case $1 in
    --prefix | --binary)
        [ -n "${2-}" ] || fail "$1 needs a path" 'see ./install.sh --help' 2
        case $1 in
        --prefix) prefix=$2 ;;
        *) binary=$(absolute "$2") ;;
        esac
        shift
        ;;
    --prefix=?*) prefix=${1#*=} ;;
    --binary=?*) binary=$(absolute "${1#*=}") ;;
    --force) force=yes ;;
    --dry-run) dry_run=yes would='would ' ;;
    --uninstall) mode=uninstall ;;
    -h | --help)
        usage
        exit 0
        ;;
    *) fail "there is no option $1" 'see ./install.sh --help' 2 ;;
    esac
    shift
done

find_places
work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
: >"$work/dirs"
: >"$work/placed"
case $mode in
install) install_all ;;
*) uninstall_all ;;
esac
