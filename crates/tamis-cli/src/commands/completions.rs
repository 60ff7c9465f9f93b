//! `tamis completions` and `tamis man`: generate shell completions and manual pages.

use std::path::{Path, PathBuf};

use clap::CommandFactory as _;
use clap_complete::Shell;

use crate::exit::{CommandResult, Exit, Failure};
use crate::io::output::write_whole;

/// Print a completion script for a shell
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  tamis completions bash > ~/.local/share/bash-completion/completions/tamis
  tamis completions zsh > \"${fpath[1]}/_tamis\"
  tamis completions fish > ~/.config/fish/completions/tamis.fish")]
pub struct CompletionsArgs {
    /// Shell to generate the script for
    #[arg(value_enum)]
    shell: Shell,
}

/// Runs `tamis completions`.
pub fn completions(args: &CompletionsArgs) -> CommandResult {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut crate::Cli::command(), "tamis", &mut script);
    write_whole(None, &script)?;
    Ok(Exit::Yes)
}

/// Write the manual pages, one for each command
#[derive(clap::Args)]
#[command(after_help = "\
Example:
  tamis man ~/.local/share/man/man1 && man tamis-dedup")]
pub struct ManArgs {
    /// Folder for the pages; the command creates a missing folder
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
}

/// Runs `tamis man`.
pub fn man(args: &ManArgs) -> CommandResult {
    std::fs::create_dir_all(&args.folder)
        .map_err(|error| Failure::io(args.folder.display(), &error))?;
    let mut program = crate::Cli::command().disable_help_subcommand(true);
    program.build();
    write_pages(&program, &args.folder)?;
    Ok(Exit::Yes)
}

/// Writes the page of a command after the pages of its subcommands. A page is written completely or
/// not at all.
fn write_pages(command: &clap::Command, folder: &Path) -> Result<(), Failure> {
    for command in command.get_subcommands() {
        write_pages(command, folder)?;
    }
    let man = clap_mangen::Man::new(command.clone());
    let path = folder.join(man.get_filename());
    let mut page = Vec::new();
    man.render(&mut page).map_err(|error| Failure::io(path.display(), &error))?;
    write_whole(Some(&path), &page)
}
