//! The parameters of the module. Users set the parameters with `CONFIG SET`, in the configuration
//! file and as arguments of `loadmodule`.

use std::ffi::{c_char, c_int, c_void};
use std::ptr::null_mut;
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};

use tamis_commands::{Setting, Settings};

use crate::api::{
    Ctx, ERR, Level, OK, ServerString, api, bytes, c_text, is_valkey, log, new_string, strings,
};

/// The settings of new filters. `None` until the module has started.
static SETTINGS: RwLock<Option<Settings>> = RwLock::new(None);

/// The settings of new filters, locked for reading.
pub struct CurrentSettings(RwLockReadGuard<'static, Option<Settings>>);

impl std::ops::Deref for CurrentSettings {
    type Target = Settings;

    fn deref(&self) -> &Settings {
        self.0.as_ref().expect("the start sets it")
    }
}

/// Returns the settings of new filters.
pub fn settings() -> CurrentSettings {
    // Each change replaces the settings in one step, so the settings are complete even after a
    // panic.
    CurrentSettings(SETTINGS.read().unwrap_or_else(PoisonError::into_inner))
}

/// Registers the parameters. Sets the parameters from the arguments of `loadmodule`, and then from
/// the configuration file.
///
/// `CONFIG REWRITE` keeps the arguments of `loadmodule`, and writes each parameter that differs from its default. This
/// function therefore registers the arguments of `loadmodule` as defaults, and the configuration file takes precedence
/// over the arguments.
///
/// # Safety
///
/// The server passed the arguments to `RedisModule_OnLoad`.
pub unsafe fn register(
    ctx: *mut Ctx,
    argv: *mut *mut ServerString,
    argc: c_int,
) -> Result<(), String> {
    let mut settings = Settings { max_filter_bytes: machine_bytes(), ..Settings::default() };
    settings.set_hash_key(Some(random_key()));
    // SAFETY: the texts end with a zero, and the server copies the texts. The private data is the
    // address of a row of a static table.
    unsafe {
        let arguments: Vec<&[u8]> = strings(argv, argc).iter().map(|it| bytes(*it)).collect();
        set_arguments(&mut settings, &arguments)?;
        *SETTINGS.write().unwrap_or_else(PoisonError::into_inner) = Some(settings.clone());
        let flags = if has_names_without_prefix() { UNPREFIXED } else { 0 };
        for setting in &Settings::ALL {
            let name = c_text(setting.name);
            let default = c_text(&settings.get(setting.name).unwrap_or_default());
            let registered = api!(RedisModule_RegisterStringConfig(
                ctx,
                name.as_ptr(),
                default.as_ptr(),
                flags,
                Some(get),
                Some(set),
                None,
                std::ptr::from_ref::<Setting>(setting).cast_mut().cast(),
            ));
            if registered == ERR {
                return Err(format!("the server refuses the parameter {}", setting.name));
            }
        }
        *loaded() = Some(Vec::new());
        if api!(RedisModule_LoadConfigs(ctx)) == ERR {
            return Err("a parameter in the configuration file is wrong".to_owned());
        }
        set_loaded(&mut settings)?;
        *SETTINGS.write().unwrap_or_else(PoisonError::into_inner) = Some(settings);
        if settings_key_is_random(&arguments) {
            log(ctx, Level::Notice, RANDOM_KEY);
        }
    }
    Ok(())
}

const RANDOM_KEY: &str = "tamis: new filters hash with a random key; give all masters the same \
    'hash-key' to merge filters of different masters or starts";

fn settings_key_is_random(arguments: &[&[u8]]) -> bool {
    !arguments.chunks(2).any(|pair| pair[0].eq_ignore_ascii_case(HASH_KEY.as_bytes()))
}

/// The argument of `loadmodule` for the secret hash key of new filters. The hash key is not a
/// parameter, because `CONFIG GET` would show the secret.
const HASH_KEY: &str = "hash-key";

/// A parameter, and its value from the configuration file or its default value.
type Loaded = (&'static Setting, Vec<u8>);

/// The parameters that the server has set during the start; `None` at any other time. The module
/// cannot choose the order in which the server sets the parameters. A value may be out of range
/// until the server sets a related parameter.
fn loaded() -> MutexGuard<'static, Option<Vec<Loaded>>> {
    static LOADED: Mutex<Option<Vec<Loaded>>> = Mutex::new(None);
    LOADED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Applies the parameters that the server has set during the start.
fn set_loaded(settings: &mut Settings) -> Result<(), String> {
    let loaded = loaded().take().unwrap_or_default();
    // The default of a parameter is the argument of `loadmodule`. An argument may have a wider
    // range than a parameter.
    let is_changed = |(setting, value): &&Loaded| !is_set(settings, setting, value);
    let changed: Vec<(&str, &[u8])> =
        loaded.iter().filter(is_changed).map(|(setting, value)| (setting.name, &**value)).collect();
    settings.set_each(&changed).map_err(|error| format!("the configuration file: {error}"))
}

fn is_set(settings: &Settings, setting: &Setting, value: &[u8]) -> bool {
    settings.get(setting.name).is_some_and(|held| held.as_bytes() == value)
}

/// Applies the pairs of name and value that follow the path in `loadmodule`.
fn set_arguments(settings: &mut Settings, arguments: &[&[u8]]) -> Result<(), String> {
    for pair in arguments.chunks(2) {
        let name = String::from_utf8_lossy(pair[0]).to_lowercase();
        let &[_, value] = pair else {
            return Err(format!("the argument {name} of loadmodule has no value"));
        };
        if name == HASH_KEY {
            settings.set_hash_key(parse_hash_key(value)?);
            continue;
        }
        settings
            .set_argument(&name, value)
            .map_err(|error| format!("argument {name} of loadmodule: {error}"))?;
    }
    Ok(())
}

/// Parses the value of [`HASH_KEY`]: `random`, `none` or 32 hexadecimal digits.
fn parse_hash_key(value: &[u8]) -> Result<Option<[u8; 16]>, String> {
    let text = String::from_utf8_lossy(value).to_lowercase();
    match text.as_str() {
        "none" => Ok(None),
        "random" => Ok(Some(random_key())),
        digits if digits.len() == 32 && digits.bytes().all(|digit| digit.is_ascii_hexdigit()) => {
            Ok(u128::from_str_radix(digits, 16).ok().map(u128::to_be_bytes))
        }
        _ => Err("argument hash-key of loadmodule: use random, none or 32 hex digits".to_owned()),
    }
}

fn random_key() -> [u8; 16] {
    let mut key = [0; 16];
    // SAFETY: the server writes `key.len()` bytes.
    unsafe { api!(RedisModule_GetRandomBytes(key.as_mut_ptr(), key.len())) };
    key
}

/// Returns the memory of the machine, in bytes. Returns `u64::MAX` if the memory size is unknown.
fn machine_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kilobytes.map_or(u64::MAX, |kilobytes| kilobytes << 10)
}

/// The flag of a parameter whose name does not begin with `tamis.`. Redis 8 and later accept this
/// flag.
const UNPREFIXED: u32 = 1 << 9;

/// Tests whether the server is Redis 8 or later, which accepts [`UNPREFIXED`].
unsafe fn has_names_without_prefix() -> bool {
    // SAFETY: these functions of the server have no preconditions.
    unsafe { !is_valkey() && api!(RedisModule_GetServerVersion()) >= 0x0008_0000 }
}

/// The text that the server last read for each setting. The module owns the texts.
static SHOWN: Mutex<[Shown; Settings::ALL.len()]> =
    Mutex::new([const { Shown(null_mut()) }; Settings::ALL.len()]);

struct Shown(*mut ServerString);

// SAFETY: only the main thread of the server reads parameters.
unsafe impl Send for Shown {}

unsafe extern "C" fn get(_: *const c_char, setting: *mut c_void) -> *mut ServerString {
    // SAFETY: the private data is a row of the settings table.
    let setting = unsafe { &*setting.cast::<Setting>() };
    let text = settings().get(setting.name).unwrap_or_default();
    let row = Settings::ALL.iter().position(|it| it.name == setting.name).unwrap_or(0);
    let mut shown = SHOWN.lock().unwrap_or_else(PoisonError::into_inner);
    // SAFETY: the server has finished reading the text of the previous call.
    unsafe {
        if !shown[row].0.is_null() {
            api!(RedisModule_FreeString(null_mut(), shown[row].0));
        }
        shown[row].0 = new_string(null_mut(), text.as_bytes());
    }
    shown[row].0
}

unsafe extern "C" fn set(
    _: *const c_char,
    value: *mut ServerString,
    setting: *mut c_void,
    error: *mut *mut ServerString,
) -> c_int {
    // SAFETY: the server passes valid arguments to this callback. The private data is a row of the
    // settings table.
    let (value, setting) = unsafe { (bytes(value), &*setting.cast::<Setting>()) };
    if let Some(loaded) = &mut *loaded() {
        loaded.push((setting, value.to_vec()));
        return OK;
    }
    let mut settings = SETTINGS.write().unwrap_or_else(PoisonError::into_inner);
    let Some(settings) = settings.as_mut() else { return ERR };
    match settings.set(setting.name, value) {
        // The server may set the value of a `loadmodule` argument again. An argument may have a
        // wider range than a parameter, so an unchanged value is accepted.
        Ok(()) => OK,
        Err(_) if is_set(settings, setting, value) => OK,
        Err(refusal) => {
            // SAFETY: the server frees the error text.
            unsafe { *error = new_string(null_mut(), refusal.to_string().as_bytes()) };
            ERR
        }
    }
}
