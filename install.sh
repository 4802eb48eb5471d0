#!/bin/sh
# Installs the `bakeoff` binary from a GitHub release.
#
#   curl -fsSL https://raw.githubusercontent.com/bakeoff-rs/bakeoff/main/install.sh | sh
#
# Environment:
#   BAKEOFF_VERSION      release to install, e.g. 0.2.0     (default: the latest)
#   BAKEOFF_INSTALL_DIR  folder of the binary               (default: ~/.local/bin)
#   BAKEOFF_RELEASES     base address of the releases       (default: GitHub)
set -eu

fail() {
    echo "install.sh: $1" >&2
    exit 1
}

target() {
    case "$(uname -s)-$(uname -m)" in
        Linux-x86_64 | Linux-amd64) echo x86_64-unknown-linux-musl ;;
        Linux-aarch64 | Linux-arm64) echo aarch64-unknown-linux-musl ;;
        Darwin-x86_64) echo x86_64-apple-darwin ;;
        Darwin-arm64) echo aarch64-apple-darwin ;;
        *) fail "no prebuilt binary for $(uname -s) $(uname -m); use \`cargo install bakeoff\`" ;;
    esac
}

download() { # URL FILE
    if command -v curl >/dev/null 2>&1; then
        curl -fsSL "$1" -o "$2"
    elif command -v wget >/dev/null 2>&1; then
        wget -q "$1" -O "$2"
    else
        fail "curl or wget is needed"
    fi || fail "cannot download $1"
}

checksum() { # FILE
    if command -v sha256sum >/dev/null 2>&1; then
        sha256sum "$1" | cut -d ' ' -f 1
    elif command -v shasum >/dev/null 2>&1; then
        shasum -a 256 "$1" | cut -d ' ' -f 1
    else
        fail "sha256sum or shasum is needed to verify the download"
    fi
}

target=$(target)
releases=${BAKEOFF_RELEASES:-https://github.com/bakeoff-rs/bakeoff/releases}
if [ -n "${BAKEOFF_VERSION:-}" ]; then
    from="$releases/download/v${BAKEOFF_VERSION#v}"
else
    from="$releases/latest/download"
fi
archive="bakeoff-$target.tar.gz"
folder=${BAKEOFF_INSTALL_DIR:-$HOME/.local/bin}

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
download "$from/$archive" "$scratch/$archive"
download "$from/$archive.sha256" "$scratch/$archive.sha256"
expected=$(cut -d ' ' -f 1 "$scratch/$archive.sha256")
actual=$(checksum "$scratch/$archive")
[ "$expected" = "$actual" ] || fail "checksum of $archive is $actual, expected $expected"

tar -xzf "$scratch/$archive" -C "$scratch"
mkdir -p "$folder"
# Renamed into place, so that a running `bakeoff` is not overwritten.
cp "$scratch/bakeoff-$target/bakeoff" "$folder/.bakeoff.new"
chmod 755 "$folder/.bakeoff.new"
mv "$folder/.bakeoff.new" "$folder/bakeoff"
echo "installed $("$folder/bakeoff" --version) in $folder"
case ":$PATH:" in
    *":$folder:"*) ;;
    *) echo "add $folder to PATH to run it" ;;
esac
