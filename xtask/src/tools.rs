//! The tools that tests need besides cargo: detection, installation where possible, and install instructions.

use crate::print;
use std::process::{Command, Stdio};

/// A tool that some steps of the test command need.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tool {
    Rustfmt,
    Clippy,
    Python,
}

impl Tool {
    const ALL: [Tool; 3] = [Tool::Rustfmt, Tool::Clippy, Tool::Python];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Tool::Rustfmt => "rustfmt",
            Tool::Clippy => "clippy",
            Tool::Python => "Python 3 with venv",
        }
    }

    /// Returns how to install the tool by hand.
    pub(crate) fn hint(self) -> &'static str {
        match self {
            Tool::Rustfmt => "rustup component add rustfmt",
            Tool::Clippy => "rustup component add clippy",
            Tool::Python => {
                "Debian: sudo apt-get install python3 python3-venv · Fedora: sudo dnf install python3 · macOS: brew install python"
            }
        }
    }

    pub(crate) fn is_present(self) -> bool {
        match self {
            Tool::Rustfmt => succeeds("cargo", &["fmt", "--version"]),
            Tool::Clippy => succeeds("cargo", &["clippy", "--version"]),
            Tool::Python => succeeds("python3", &["-c", "import venv, ensurepip"]),
        }
    }

    fn debian_packages(self) -> &'static [&'static str] {
        match self {
            Tool::Rustfmt | Tool::Clippy => &[],
            Tool::Python => &["python3", "python3-venv"],
        }
    }
}

/// Returns the tools that are missing, after an attempt to install them.
///
/// Installs only as root on a system with `apt-get`, as in a CI container. Elsewhere the machine is left as it is.
pub(crate) fn missing() -> Vec<Tool> {
    let absent = |tool: &Tool| !tool.is_present();
    let missing: Vec<Tool> = Tool::ALL.into_iter().filter(absent).collect();
    let packages: Vec<&str> =
        missing.iter().flat_map(|tool| tool.debian_packages()).copied().collect();
    if packages.is_empty() || !is_root() || !succeeds("apt-get", &["--version"]) {
        return missing;
    }
    print(&format!("xtask: installing {}", packages.join(" ")));
    let apt = |arguments: &[&str]| Command::new("apt-get").args(arguments).status();
    let _ = apt(&["update", "-qq"]);
    let _ = apt(&[&["install", "-y", "-qq"], packages.as_slice()].concat());
    missing.into_iter().filter(absent).collect()
}

fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output();
    id.is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}

pub(crate) fn succeeds(program: &str, arguments: &[&str]) -> bool {
    let mut command = Command::new(program);
    command.args(arguments).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
