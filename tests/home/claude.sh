#!/bin/sh
# Stands in for Claude Code: notes how it was called, and does to its folder what the plugin commands do.
set -eu
printf '%s\n' "$*" >>"$CALLS"
folder=${CLAUDE_CONFIG_DIR:-$HOME/.claude}
plugins=$folder/plugins
settings=$folder/settings.json
id=fakechat@claude-plugins-official
here=$plugins/cache/claude-plugins-official/fakechat/0.0.1

# Like the real one it writes the settings anew, in its own form.
rewrite() {
    [ -s "$settings" ] || printf '{}' >"$settings"
    text=$(tr -d '\r\n\t' <"$settings" | sed "$1")
    printf '%s\n' "$text" >"$settings"
}

case "$*" in
"$FAIL") echo "no luck today" >&2; exit 1 ;;
--version) echo "${CLAUDE_VERSION:-2.1.332} (Claude Code)" ;;
"plugin list --json")
    if [ -f "$plugins/installed_plugins.json" ]; then
        on=false
        if tr -d ' ' <"$settings" | grep -q "\"$id\":true"; then on=true; fi
        printf '[{"id":"%s","scope":"user","enabled":%s,"installPath":"%s"}]\n' "$id" "$on" "$here"
    else
        echo '[]'
    fi ;;
"plugin marketplace add anthropics/claude-plugins-official")
    mkdir -p "$plugins"
    echo '{"claude-plugins-official":{}}' >"$plugins/known_marketplaces.json" ;;
"plugin install $id")
    [ -f "$plugins/known_marketplaces.json" ] || { echo "no such marketplace" >&2; exit 1; }
    mkdir -p "$here"
    echo '// the server' >"$here/server.ts"
    printf '{"plugins":{"%s":[{"scope":"user","installPath":"%s"}]}}\n' "$id" "$here" >"$plugins/installed_plugins.json"
    rewrite "s/ *}\$/,\"enabledPlugins\":{\"$id\":true}}/; s/{,/{/" ;;
"plugin disable $id -s user") rewrite "s/\"$id\":true/\"$id\":false/" ;;
"plugin uninstall $id -s user")
    rm -r "$plugins/cache" "$plugins/installed_plugins.json"
    rewrite "s/\"$id\": *false//" ;;
"plugin marketplace remove claude-plugins-official")
    rm "$plugins/known_marketplaces.json"
    rmdir "$plugins" ;;
*) echo "unknown command: $*" >&2; exit 1 ;;
esac
