//! Everything that must hold before a change lands, in the order of how quickly it fails.

use std::io::Write;
use std::process::{Command, Stdio};

/// Runs all steps; the test runner's own summary comes last.
pub(crate) fn test() -> Result<(), String> {
    install_what_is_missing()?;
    step("format", "cargo", &["fmt", "--all", "--check"])?;
    say("xtask: layers");
    crate::layers::check()?;
    step(
        "lints",
        "cargo",
        &["clippy", "--workspace", "--all-targets", "--all-features", "--", "-D", "warnings"],
    )?;
    let fuzz = ["build", "--manifest-path", "crates/llm/fuzz/Cargo.toml"];
    step("fuzz targets", "cargo", &fuzz)?;
    docs()?;
    step(
        "examples in docs",
        "cargo",
        &["test", "--workspace", "--all-features", "--doc", "--quiet"],
    )?;
    if has("cargo", &["nextest", "--version"]) {
        step("tests", "cargo", &["nextest", "run", "--workspace", "--all-features"])
    } else {
        step("tests", "cargo", &["test", "--workspace", "--all-features", "--all-targets"])
    }
}

fn docs() -> Result<(), String> {
    say("xtask: docs");
    let mut command = Command::new("cargo");
    command.args(["doc", "--workspace", "--all-features", "--no-deps", "--quiet"]);
    command.env("RUSTDOCFLAGS", "-D warnings");
    run("docs", &mut command)
}

/// What tests need beside Rust: a C++ compiler for the fuzz targets, and Python with `venv` for
/// the official client libraries. Installed where `apt-get` is at hand; elsewhere the steps that
/// need them say so.
fn install_what_is_missing() -> Result<(), String> {
    let mut packages = Vec::new();
    if !has("c++", &["--version"]) {
        packages.push("g++");
    }
    if !has("python3", &["-c", "import venv, ensurepip"]) {
        packages.extend(["python3", "python3-venv"]);
    }
    if packages.is_empty() || !has("apt-get", &["--version"]) {
        return Ok(());
    }
    step("package lists", "apt-get", &["update", "-qq"])?;
    let install: Vec<&str> = ["install", "-y", "-qq"].into_iter().chain(packages).collect();
    step("packages", "apt-get", &install)
        .map_err(|error| format!("{error}; install these by hand: {}", install[3..].join(" ")))
}

fn has(program: &str, arguments: &[&str]) -> bool {
    let mut command = Command::new(program);
    command.args(arguments).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

fn step(name: &str, program: &str, arguments: &[&str]) -> Result<(), String> {
    say(&format!("xtask: {name}"));
    run(name, Command::new(program).args(arguments))
}

fn run(name: &str, command: &mut Command) -> Result<(), String> {
    let status = command.status().map_err(|error| format!("{name}: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("{name}: {status}")) }
}

/// Talks to whoever started it.
pub(crate) fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}
