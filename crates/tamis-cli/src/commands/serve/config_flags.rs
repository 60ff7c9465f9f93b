//! Defines a flag and an environment variable for each option of the server.

use std::ffi::OsString;
use std::sync::LazyLock;

use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command};
use tamis_server::{Config, ConfigOption};

/// The options that the user set by flags or environment variables.
pub struct ConfigFlags {
    /// The options in the order of the help text.
    pub given: Vec<Given>,
}

/// An option with its value.
pub struct Given {
    /// The option. [`Config::set`] takes the name of the option.
    pub option: ConfigOption,
    /// The value.
    pub value: String,
    /// The environment variable, if the value comes from the environment.
    variable: Option<&'static str>,
}

impl Given {
    /// Returns the option as the user wrote it, such as `--maxmemory 2gb` or `TAMIS_MAXMEMORY=2gb`.
    /// For a secret option, returns the option without the value, even if the value is mistyped.
    pub fn shown(&self) -> String {
        let Self { option, value, variable } = self;
        match variable {
            _ if option.is_secret => self.source(),
            Some(_) => format!("{}={value}", self.source()),
            None => format!("{} {value}", self.source()),
        }
    }

    /// Returns the source of the value: the flag or the variable.
    pub fn source(&self) -> String {
        self.variable.map_or_else(|| format!("--{}", self.option.name), str::to_owned)
    }
}

/// An option with its environment variable, such as `TAMIS_MAXMEMORY`.
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

/// Returns the names of the variables that begin with `TAMIS_` and set no option. Such a name is often a typing error.
pub fn unknown_variables(names: impl Iterator<Item = OsString>) -> Vec<String> {
    let others = ["TAMIS_CONFIG", "TAMIS_LOGLEVEL", "TAMIS_LOG_FORMAT"];
    let is_known =
        |name: &str| others.contains(&name) || FLAGS.iter().any(|flag| flag.variable == name);
    let names = names.filter_map(|name| name.into_string().ok());
    let mut unknown: Vec<String> =
        names.filter(|name| name.starts_with("TAMIS_") && !is_known(name)).collect();
    unknown.sort();
    unknown
}

impl Flag {
    fn arg(&'static self) -> Arg {
        let ConfigOption { name, group, value, help, .. } = self.option;
        Arg::new(name)
            .long(name)
            .value_name(value)
            .help(help)
            .help_heading(group.name())
            .env(&*self.variable)
            // The help hides the values because some values are passwords or keys.
            .hide_env_values(true)
            .allow_negative_numbers(true)
    }
}

impl clap::FromArgMatches for ConfigFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let given = |flag: &'static Flag| {
            let option = flag.option;
            let name = option.name;
            let value = matches.get_one::<String>(name)?.clone();
            let is_variable = matches.value_source(name) == Some(ValueSource::EnvVariable);
            Some(Given { option, value, variable: is_variable.then_some(&*flag.variable) })
        };
        Ok(Self { given: FLAGS.iter().filter_map(given).collect() })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelled_variable_is_unknown() {
        let names = ["TAMIS_REQUIREPASSWORD", "TAMIS_PORT", "TAMIS_CONFIG", "PATH", "TAMIS_A"];
        let unknown = unknown_variables(names.into_iter().map(OsString::from));
        assert_eq!(unknown, ["TAMIS_A", "TAMIS_REQUIREPASSWORD"]);
    }
}
