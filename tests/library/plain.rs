// The C functions of include/qkv/c.h from Rust: errors, a text in pieces, taps with a function that edits, four threads.
use std::ffi::{c_char, c_int, c_void, CStr, CString};

#[repr(C)]
struct GenerateOptions {
    size: usize,
    max_new: i64,
    temperature: f64,
    top_p: f64,
    top_k: i64,
    seed: u64,
    stop: *const c_char,
}

type Tap = extern "C" fn(*mut c_void, *const c_char, *const i64, usize, *mut f32, usize) -> c_int;

#[link(name = "qkv")]
extern "C" {
    fn qkv_error() -> *const c_char;
    fn qkv_error_hint() -> *const c_char;
    fn qkv_free(returned: *mut c_void);
    fn qkv_open(path: *const c_char, options: *const c_void) -> *mut c_void;
    fn qkv_close(model: *mut c_void);
    fn qkv_generate_defaults(options: *mut GenerateOptions);
    fn qkv_generate(model: *mut c_void, prompt: *const c_char, options: *const GenerateOptions) -> *mut c_char;
    fn qkv_read(model: *mut c_void, text: *const c_char, taps: *const c_char, edit: c_int, function: Tap, user: *mut c_void) -> c_int;
    fn qkv_likelihood(model: *mut c_void, text: *const c_char, total: *mut f64, tokens: *mut i64) -> c_int;
}

fn said(text: *const c_char) -> String {
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

fn write(model: usize, prompt: &CString, max_new: i64) -> String {
    unsafe {
        let mut options: GenerateOptions = std::mem::zeroed();
        qkv_generate_defaults(&mut options);
        options.max_new = max_new;
        let text = qkv_generate(model as *mut c_void, prompt.as_ptr(), &options);
        assert!(!text.is_null(), "{}", said(qkv_error()));
        let copy = said(text);
        qkv_free(text as *mut c_void);
        copy
    }
}

extern "C" fn count(user: *mut c_void, _: *const c_char, _: *const i64, rank: usize, values: *mut f32, count: usize) -> c_int {
    unsafe {
        *(user as *mut usize) += rank;
        for i in 0..count {
            *values.add(i) *= 1.0;
        }
    }
    0
}

extern "C" fn refuse(_: *mut c_void, _: *const c_char, _: *const i64, _: usize, _: *mut f32, _: usize) -> c_int {
    7
}

fn main() {
    let arguments: Vec<CString> = std::env::args().map(|word| CString::new(word).unwrap()).collect();
    let (path, prompt) = (&arguments[1], arguments[2].clone());
    unsafe {
        assert!(qkv_open(CString::new("/no/such/model").unwrap().as_ptr(), std::ptr::null()).is_null());
        assert!(said(qkv_error()).contains("/no/such/model"));
        assert!(!said(qkv_error_hint()).is_empty());
        assert!(qkv_open(std::ptr::null(), std::ptr::null()).is_null());

        let model = qkv_open(path.as_ptr(), std::ptr::null());
        assert!(!model.is_null(), "{}", said(qkv_error()));
        let alone = write(model as usize, &prompt, 40);
        println!("{alone}");

        let taps = CString::new("attn.z").unwrap();
        let mut ranks = 0usize;
        let user = &mut ranks as *mut usize as *mut c_void;
        assert_eq!(qkv_read(model, prompt.as_ptr(), taps.as_ptr(), 1, count, user), 0, "{}", said(qkv_error()));
        assert_eq!(ranks % 3, 0);
        assert!(qkv_read(model, prompt.as_ptr(), taps.as_ptr(), 0, refuse, user) != 0);
        assert!(said(qkv_error()).contains("returned 7"));
        let wrong = CString::new("no.such.tap").unwrap();
        assert!(qkv_read(model, prompt.as_ptr(), wrong.as_ptr(), 0, count, user) != 0);
        let (mut total, mut tokens) = (0.0, 0);
        assert_eq!(qkv_likelihood(model, prompt.as_ptr(), &mut total, &mut tokens), 0);
        assert!(total < 0.0 && tokens > 0);

        let address = model as usize;
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let prompt = prompt.clone();
                std::thread::spawn(move || write(address, &prompt, 40))
            })
            .collect();
        for thread in threads {
            assert_eq!(thread.join().unwrap(), alone);
        }
        println!("threads agree");
        qkv_close(model);
        qkv_close(std::ptr::null_mut());
    }
}
