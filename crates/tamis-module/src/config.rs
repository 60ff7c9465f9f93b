//! The parameters of the module: `CONFIG GET`, `CONFIG SET`, the configuration file and the
//! arguments of `loadmodule`.

use std::ffi::{c_char, c_int, c_void};
use std::ptr::null_mut;
use std::sync::{Mutex, PoisonError, RwLock, RwLockReadGuard};

use tamis_commands::{Setting, Settings};

use crate::api::{
    Ctx, ERR, Level, OK, ServerString, api, bytes, c_text, is_valkey, log, new_string, strings,
};

/// The settings of new filters. `None` before the start.
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
    // The settings are changed in one step, so they are whole after a panic too.
    CurrentSettings(SETTINGS.read().unwrap_or_else(PoisonError::into_inner))
}

/// Registers the parameters, sets them from the configuration file, and then from the arguments of
/// `loadmodule`.
///
/// # Safety
///
/// The arguments are those of the start.
pub unsafe fn register(
    ctx: *mut Ctx,
    argv: *mut *mut ServerString,
    argc: c_int,
) -> Result<(), String> {
    let mut settings = Settings { max_filter_bytes: machine_bytes(), ..Settings::default() };
    settings.set_hash_key(Some(random_key()));
    *SETTINGS.write().unwrap_or_else(PoisonError::into_inner) = Some(settings);
    // SAFETY: the texts end with a zero, and the server copies them. The private data is the
    // address of a row of a static table.
    unsafe {
        let flags = if has_names_without_prefix() { UNPREFIXED } else { 0 };
        for setting in &Settings::ALL {
            let name = c_text(setting.name);
            let default = c_text(&Settings::default().get(setting.name).unwrap_or_default());
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
        if api!(RedisModule_LoadConfigs(ctx)) == ERR {
            return Err("a parameter in the configuration file is wrong".to_owned());
        }
        let arguments: Vec<&[u8]> = strings(argv, argc).iter().map(|it| bytes(*it)).collect();
        set_arguments(&arguments)?;
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

/// The argument for the secret key with which new filters hash. It is no parameter, because
/// `CONFIG GET` would show it.
const HASH_KEY: &str = "hash-key";

/// The names of arguments of older versions of RedisBloom.
const OLD_NAMES: [(&str, &str); 3] = [
    ("ERROR_RATE", "bf-error-rate"),
    ("INITIAL_SIZE", "bf-initial-size"),
    ("CF_MAX_EXPANSIONS", "cf-max-expansions"),
];

/// Sets the pairs of name and value that follow the path in `loadmodule`.
fn set_arguments(arguments: &[&[u8]]) -> Result<(), String> {
    let mut settings = settings().clone();
    for pair in arguments.chunks(2) {
        let name = String::from_utf8_lossy(pair[0]).to_lowercase();
        let is_old = |(old, _): &&(&str, &str)| name.eq_ignore_ascii_case(old);
        let name = OLD_NAMES.iter().find(is_old).map_or(name.as_str(), |(_, name)| name);
        let &[_, value] = pair else {
            return Err(format!("the argument {name} of loadmodule has no value"));
        };
        if name == HASH_KEY {
            settings.set_hash_key(parse_hash_key(value)?);
            continue;
        }
        settings
            .set(name, value)
            .map_err(|error| format!("argument {name} of loadmodule: {error}"))?;
    }
    *SETTINGS.write().unwrap_or_else(PoisonError::into_inner) = Some(settings);
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
    // SAFETY: the server writes the given number of bytes.
    unsafe { api!(RedisModule_GetRandomBytes(key.as_mut_ptr(), key.len())) };
    key
}

/// Returns the memory of the machine, in bytes; the maximum if it is unknown.
fn machine_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kilobytes.map_or(u64::MAX, |kilobytes| kilobytes << 10)
}

/// The flag of a parameter whose name does not begin with `tamis.`, from Redis 8 on.
const UNPREFIXED: u32 = 1 << 9;

/// Tests whether the server is Redis 8 or later, which accepts [`UNPREFIXED`].
unsafe fn has_names_without_prefix() -> bool {
    // SAFETY: the function has no conditions.
    unsafe { !is_valkey() && api!(RedisModule_GetServerVersion()) >= 0x0008_0000 }
}

/// The texts that the server read last, one for each setting. The module owns them.
static SHOWN: Mutex<[Shown; Settings::ALL.len()]> =
    Mutex::new([const { Shown(null_mut()) }; Settings::ALL.len()]);

struct Shown(*mut ServerString);

// SAFETY: only the main thread of the server reads parameters.
unsafe impl Send for Shown {}

unsafe extern "C" fn get(_: *const c_char, setting: *mut c_void) -> *mut ServerString {
    // SAFETY: the private data is a row of the table.
    let setting = unsafe { &*setting.cast::<Setting>() };
    let text = settings().get(setting.name).unwrap_or_default();
    let row = Settings::ALL.iter().position(|it| it.name == setting.name).unwrap_or(0);
    let mut shown = SHOWN.lock().unwrap_or_else(PoisonError::into_inner);
    // SAFETY: the server has read the text of the last call.
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
    // SAFETY: the arguments of this callback. The private data is a row of the table.
    let (value, setting) = unsafe { (bytes(value), &*setting.cast::<Setting>()) };
    let mut settings = SETTINGS.write().unwrap_or_else(PoisonError::into_inner);
    let Some(settings) = settings.as_mut() else { return ERR };
    match settings.set(setting.name, value) {
        Ok(()) => OK,
        Err(refusal) => {
            // SAFETY: the server frees the text.
            unsafe { *error = new_string(null_mut(), refusal.to_string().as_bytes()) };
            ERR
        }
    }
}
