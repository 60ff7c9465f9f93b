//! A flag and a variable of the environment for each option of the server.

use std::sync::LazyLock;

use clap::{Arg, ArgMatches, Command};
use tamis_server::{Config, ConfigOption};

/// The options that were given as flags or in the environment, by name.
pub struct ConfigFlags {
    /// Names and values.
    pub given: Vec<(&'static str, String)>,
}

/// An option with its variable, such as `TAMIS_MAXMEMORY`.
struct Flag {
    option: ConfigOption,
    variable: String,
}

static FLAGS: LazyLock<Vec<Flag>> = LazyLock::new(|| {
    let flag = |option: ConfigOption| {
        let variable = format!("TAMIS_{}", option.name.replace('-', "_").to_uppercase());
        Flag { option, variable }
    };
    Config::options().into_iter().map(flag).collect()
});

impl Flag {
    fn arg(&'static self) -> Arg {
        let ConfigOption { name, group, value, help } = self.option;
        Arg::new(name)
            .long(name)
            .value_name(value)
            .help(help)
            .help_heading(group.name())
            .env(&*self.variable)
            // Passwords and keys among them.
            .hide_env_values(true)
            .allow_negative_numbers(true)
    }
}

impl clap::FromArgMatches for ConfigFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let value = |flag: &Flag| {
            let value = matches.get_one::<String>(flag.option.name)?;
            Some((flag.option.name, value.clone()))
        };
        Ok(Self { given: FLAGS.iter().filter_map(value).collect() })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl clap::Args for ConfigFlags {
    fn augment_args(command: Command) -> Command {
        command.args(FLAGS.iter().map(Flag::arg))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}
