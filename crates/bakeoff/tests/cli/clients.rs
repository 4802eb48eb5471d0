//! The official Python clients talk to `bakeoff sim` without complaint.

use crate::support::Provider;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A Python with the official clients; kept between runs of the tests. The error says why not.
fn python() -> Result<PathBuf, String> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("python-clients");
    let python = folder.join("bin/python");
    let has_clients = |python: &Path| {
        succeeded(Command::new(python).args(["-c", "import openai, anthropic"]).output())
    };
    if has_clients(&python).is_ok() {
        return Ok(python);
    }
    succeeded(Command::new("python3").args(["-m", "venv"]).arg(&folder).output())?;
    let install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
    let versions = include_str!("clients.txt").split_whitespace();
    succeeded(Command::new(&python).args(install).args(versions).output())?;
    has_clients(&python).map(|()| python)
}

fn succeeded(output: std::io::Result<Output>) -> Result<(), String> {
    match output {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
        Err(error) => Err(error.to_string()),
    }
}

#[test]
fn the_official_python_clients_work() {
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
    let talk = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{talk}");
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "all is well", "{talk}");
}
