//! Correctness of `map` under reply faults, savings of packing, and memory for many rows; on the simulated
//! provider.

mod attack;
mod load;

pub use attack::AttackReport;
pub use load::{LoadRow, PackRow};

use crate::Error;
use crate::scratch::Scratch;
use std::io::Write;
use std::path::PathBuf;

/// Configuration of the map benchmark.
#[derive(Debug, Clone)]
pub struct MapConfig {
    /// Path of the program `bakeoff`.
    pub program: PathBuf,
    /// Rows per seed through the model with reply faults.
    pub attacked: u32,
    /// Number of seeds; each has other ids and faults.
    pub seeds: u32,
    /// Number of rows of the largest job.
    pub rows: u32,
}

/// Results of the map benchmark.
#[derive(Debug, Clone)]
pub struct MapReport {
    /// Correctness under reply faults.
    pub attack: AttackReport,
    /// Jobs with different pack sizes.
    pub packs: Vec<PackRow>,
    /// Jobs with a tenth of the rows and with all of them.
    pub loads: Vec<LoadRow>,
}

/// Runs the map benchmark and calls `on_stage` with the name of each stage.
///
/// # Errors
///
/// Fails if a job fails.
pub async fn map(
    config: &MapConfig,
    on_stage: &mut (dyn FnMut(&str) + Send),
) -> Result<MapReport, Error> {
    let folder = Scratch::new()?;
    // Memory first: a child inherits the peak of this process, which the later stages would increase.
    on_stage("memory");
    let tenth = (config.rows / 10).max(1);
    let loads = vec![
        load::measure(&config.program, &folder, tenth)?,
        load::measure(&config.program, &folder, config.rows)?,
    ];
    on_stage("packs");
    let packs = load::packs(&config.program, &folder, (config.rows / 50).max(1))?;
    on_stage("reply faults");
    let attack = attack::measure(&folder, config.attacked, config.seeds).await?;
    Ok(MapReport { attack, packs, loads })
}

/// Task of the benchmark. The simulated models copy both values from an item, so that the benchmark can check
/// which item an answer belongs to.
const TASK: &str = "instructions = \"Copy the text, and the number in it.\"\n\
    [output.copy]\ntype = \"string\"\n[output.n]\ntype = \"integer\"\n";

/// Returns the text of a row.
fn text(number: u32) -> String {
    format!("row-{number}")
}

/// Writes a file with a number of rows.
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
