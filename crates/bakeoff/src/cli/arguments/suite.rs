//! Arguments of `bakeoff init` and `bakeoff check`.

use super::shared::CaseArguments;
use super::values::whole;
use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct InitArguments {
    /// Folder of the new suite
    #[arg(default_value = ".")]
    pub(crate) folder: PathBuf,
    /// Overwrite existing files
    #[arg(long)]
    pub(crate) force: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CheckArguments {
    /// Suite file, folder with a bakeoff.toml, or FastSkill project
    #[arg(default_value = ".")]
    pub(crate) suite: PathBuf,
    /// Agent of a FastSkill project; repeatable
    #[arg(long = "agent", short = 'a', value_name = "NAME")]
    pub(crate) agents: Vec<String>,
    /// All installed agents, for a FastSkill project
    #[arg(long, conflicts_with = "agents")]
    pub(crate) all: bool,
    /// Model of the agents of a FastSkill project
    #[arg(long, value_name = "NAME")]
    pub(crate) model: Option<String>,
    #[command(flatten)]
    pub(crate) only: CaseArguments,
    /// Seed of --sample [default: 0]
    #[arg(long, value_name = "N", value_parser = whole::<u64>)]
    pub(crate) seed: Option<u64>,
    /// Print the settings of the suite as one JSON event on standard output
    #[arg(long)]
    pub(crate) json: bool,
}
