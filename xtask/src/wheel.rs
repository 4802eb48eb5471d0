//! The Python wheel: builds it, installs it into an empty virtual environment and runs the first example of the
//! README from there.

use crate::steps::run;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Version of maturin that `pyproject.toml` allows.
const MATURIN: &str = "maturin>=1.8,<2";

/// Checks the wheel. Returns a reason if it cannot be checked here because PyPI is not reachable.
pub(crate) fn check() -> Result<Option<String>, String> {
    let folder = Path::new("target/wheel");
    let tools = environment(&folder.join("tools"))?;
    if let Err(reason) = install(&tools, &[MATURIN]) {
        return Ok(Some(format!("maturin cannot be installed: {reason}")));
    }
    let wheels = folder.join("wheels");
    remove(&wheels)?;
    // Most crates are not optimised: this checks the package, and takes half the time. The target folder is a
    // separate one, so that a release build for use stays valid.
    run(Command::new(tools.join("maturin"))
        .env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "0")
        .args(["build", "--release", "--locked", "--quiet", "--target-dir"])
        .arg(folder.join("build"))
        .arg("--out")
        .arg(&wheels))?;
    let wheel = only_file(&wheels)?;

    let empty = folder.join("empty");
    remove(&empty)?;
    let user = environment(&empty)?;
    install(&user, &["--no-index", &wheel.display().to_string()])?;
    let program = user.join("bakeoff");
    run(Command::new(&program).arg("--version"))?;
    let runs = folder.join("runs");
    remove(&runs)?;
    run(Command::new(&program)
        .args([
            "run",
            "examples/capitals",
            "--no-fail",
            "--quiet",
            "--no-cache",
            "--no-memory",
            "--out",
        ])
        .arg(&runs))?;
    Ok(None)
}

/// Creates a virtual environment, unless it exists, and returns its folder of programs.
fn environment(folder: &Path) -> Result<PathBuf, String> {
    let programs = folder.join("bin");
    if !programs.join("python").exists() {
        run(Command::new("python3").args(["-m", "venv"]).arg(folder))?;
    }
    Ok(programs)
}

fn install(programs: &Path, what: &[&str]) -> Result<(), String> {
    let output = Command::new(programs.join("python"))
        .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"])
        .args(what)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| error.to_string())?;
    let reason = || String::from_utf8_lossy(&output.stderr).trim().to_owned();
    if output.status.success() { Ok(()) } else { Err(reason()) }
}

fn remove(folder: &Path) -> Result<(), String> {
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(format!("cannot remove {}: {error}", folder.display()))
        }
        _ => Ok(()),
    }
}

fn only_file(folder: &Path) -> Result<PathBuf, String> {
    let error = |error: std::io::Error| format!("{}: {error}", folder.display());
    let entries: Vec<PathBuf> = std::fs::read_dir(folder)
        .map_err(error)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<_, _>>()
        .map_err(error)?;
    match entries.as_slice() {
        [file] => Ok(file.clone()),
        files => Err(format!("{} files in {}, expected one wheel", files.len(), folder.display())),
    }
}
