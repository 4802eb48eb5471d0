//! Does `map` keep what it promises? Rows through a model that does everything wrong, what packing
//! saves, and how much memory many rows take; on the simulated provider.

mod attack;
mod load;

pub use attack::AttackReport;
pub use load::{LoadRow, PackRow};

use crate::Error;
use crate::scratch::Scratch;
use std::io::Write;
use std::path::PathBuf;

/// What is measured.
#[derive(Debug, Clone)]
pub struct MapConfig {
    /// The program `bakeoff`.
    pub program: PathBuf,
    /// Rows through the model that does everything wrong, for each seed.
    pub attacked: u32,
    /// How often they go through it, each time with other ids and other mischief.
    pub seeds: u32,
    /// Rows of the largest job.
    pub rows: u32,
}

/// What was found.
#[derive(Debug, Clone)]
pub struct MapReport {
    /// Whose answers rows had.
    pub attack: AttackReport,
    /// The same rows in packs of different sizes.
    pub packs: Vec<PackRow>,
    /// A tenth of the rows, and all of them.
    pub loads: Vec<LoadRow>,
}

/// Measures everything; `tell` hears what is being measured.
///
/// # Errors
///
/// When a job fails that cannot.
pub async fn map(
    config: &MapConfig,
    tell: &mut (dyn FnMut(&str) + Send),
) -> Result<MapReport, Error> {
    let folder = Scratch::new()?;
    // Memory first: a child inherits the peak of this process, which what comes later would raise.
    tell("memory");
    let tenth = (config.rows / 10).max(1);
    let loads = vec![
        load::measure(&config.program, &folder, tenth)?,
        load::measure(&config.program, &folder, config.rows)?,
    ];
    tell("packs");
    let packs = load::packs(&config.program, &folder, (config.rows / 50).max(1))?;
    tell("a model that does everything wrong");
    let attack = attack::measure(&folder, config.attacked, config.seeds).await?;
    Ok(MapReport { attack, packs, loads })
}

/// What is asked: the simulated models copy both from an item, so that it can be seen whose answer
/// it is.
const TASK: &str = "instructions = \"Copy the text, and the number in it.\"\n\
    [output.copy]\ntype = \"string\"\n[output.n]\ntype = \"integer\"\n";

/// The text of a row.
fn text(number: u32) -> String {
    format!("row-{number}")
}

/// A file with so many rows.
fn write_rows(folder: &Scratch, rows: u32) -> Result<PathBuf, Error> {
    let path = folder.folder().join(format!("rows-{rows}.jsonl"));
    let write = || {
        let mut file = std::io::BufWriter::new(std::fs::File::create(&path)?);
        for number in 0..rows {
            writeln!(file, "{{\"text\":\"{}\"}}", text(number))?;
        }
        file.flush()
    };
    write().map_err(|source| Error::Io { action: "write", path: path.clone(), source })?;
    Ok(path)
}
