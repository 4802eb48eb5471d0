//! `bakeoff sim` with the official Python clients.

use crate::support::Provider;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Returns a Python with the official clients, which is kept between test runs.
fn python() -> Result<PathBuf, String> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("python-clients");
    let python = folder.join("bin/python");
    let has_clients = |python: &Path| {
        check_success(Command::new(python).args(["-c", "import openai, anthropic"]).output())
    };
    if has_clients(&python).is_ok() {
        return Ok(python);
    }
    check_success(Command::new("python3").args(["-m", "venv"]).arg(&folder).output())?;
    let install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
    let versions = include_str!("clients.txt").split_whitespace();
    check_success(Command::new(&python).args(install).args(versions).output())?;
    has_clients(&python).map(|()| python)
}

fn check_success(output: std::io::Result<Output>) -> Result<(), String> {
    match output {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
        Err(error) => Err(error.to_string()),
    }
}

#[test]
fn official_python_clients_work_with_sim() {
    let python = match python() {
        Ok(python) => python,
        Err(reason) => {
            eprintln!("skipped: the official Python clients cannot be installed here: {reason}");
            return;
        }
    };
    let provider = Provider::start(&[]);
    let output = Command::new(python)
        .args(["-W", "error::UserWarning", "-c", include_str!("clients.py"), &provider.base_url])
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "ok", "{stderr}");
}
