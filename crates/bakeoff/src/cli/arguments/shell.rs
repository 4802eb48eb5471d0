//! Arguments of the commands that integrate Bakeoff with a shell.

use clap::Args;
use clap_complete::Shell;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_help = COMPLETIONS_EXAMPLES)]
pub(crate) struct CompletionsArguments {
    /// Shell
    #[arg(value_enum)]
    pub(crate) shell: Shell,
}

const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  bakeoff completions bash > ~/.local/share/bash-completion/completions/bakeoff
  bakeoff completions zsh > ~/.zfunc/_bakeoff
  bakeoff completions fish > ~/.config/fish/completions/bakeoff.fish";

#[derive(Debug, Args)]
pub(crate) struct ManArguments {
    /// Folder in which to write one page per command
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
}
