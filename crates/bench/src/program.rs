//! Location of the program under measurement.

use crate::arguments::Arguments;
use bakeoff_bench::Error;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Returns the `bakeoff` to measure: `--program`, or the one next to this program.
///
/// Under `cargo run` and `cargo test`, cargo brings that one up to date first, so that a stale build is
/// never measured.
pub(crate) fn locate(arguments: &Arguments) -> Result<PathBuf, Error> {
    if let Some(program) = &arguments.program {
        return Ok(program.clone());
    }
    let this = std::env::current_exe().map_err(|source| Error::Io {
        action: "locate",
        path: "bakeoff-bench".into(),
        source,
    })?;
    let folder = this.parent().unwrap_or(Path::new("."));
    let program = folder.join("bakeoff");
    if let Some(cargo) = std::env::var_os("CARGO") {
        let status = Command::new(cargo)
            .args(["build", "--quiet", "--package", "bakeoff", "--profile", profile(folder)])
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .stdout(Stdio::null())
            .status();
        if !status.is_ok_and(|status| status.success()) {
            return Err(Error::NoProgram(program));
        }
    }
    if program.is_file() { Ok(program) } else { Err(Error::NoProgram(program)) }
}

/// Returns the cargo profile whose output is in this folder.
fn profile(folder: &Path) -> &str {
    match folder.file_name().and_then(|name| name.to_str()) {
        None | Some("debug") => "dev",
        Some(name) => name,
    }
}
