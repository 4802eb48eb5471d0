#!/usr/bin/env bash
# Packs a release archive: binary, completions, man pages, README and licences, with its checksum.
#
#   pack.sh TARGET BINARY OUT
set -euo pipefail
target=$1 binary=$2 out=$3
folder=$(mktemp -d)/bakeoff-$target
mkdir -p "$folder/completions" "$folder/man" "$out"
cp "$binary" README.md LICENSE-MIT LICENSE-APACHE CHANGELOG.md "$folder/"
"$binary" completions bash > "$folder/completions/bakeoff.bash"
"$binary" completions zsh > "$folder/completions/_bakeoff"
"$binary" completions fish > "$folder/completions/bakeoff.fish"
"$binary" man --out "$folder/man"
archive=bakeoff-$target.tar.gz
tar -czf "$out/$archive" -C "$(dirname "$folder")" "bakeoff-$target"
cd "$out"
if command -v sha256sum > /dev/null; then
  sha256sum "$archive" > "$archive.sha256"
else
  shasum -a 256 "$archive" > "$archive.sha256"
fi
