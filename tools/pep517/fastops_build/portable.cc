// Linked to each module of a wheel, in place of what only the newest systems have: without it a
// wheel compiled with glibc 2.34 and GCC 11 or later runs nowhere else. Hidden, so that nobody else
// in the process finds it, and dropped by the linker where a module asks for none of it.
#include <pthread.h>

#include <new>

// The oldest version of glibc's symbols on this processor.
#if defined(__aarch64__)
#define FASTOPS_OLDEST "GLIBC_2.17"
#else
#define FASTOPS_OLDEST "GLIBC_2.2.5"
#endif

#define FASTOPS_INSTEAD_OF(name) __asm__(name) __attribute__((visibility("hidden")))

// Since glibc 2.34 this is in libc, under a new version. The old version is there, too, and on
// older systems in libpthread, which Python has loaded.
extern "C" int OldTryLock(pthread_mutex_t* mutex);
__asm__(".symver OldTryLock, pthread_mutex_trylock@" FASTOPS_OLDEST);
int TryLock(pthread_mutex_t* mutex) FASTOPS_INSTEAD_OF("pthread_mutex_trylock");
int TryLock(pthread_mutex_t* mutex) { return OldTryLock(mutex); }

// This, too. On older systems the old version is in libdl, which Python has loaded.
extern "C" void* OldLookUp(void* handle, const char* name);
__asm__(".symver OldLookUp, dlsym@" FASTOPS_OLDEST);
void* LookUp(void* handle, const char* name) FASTOPS_INSTEAD_OF("dlsym");
void* LookUp(void* handle, const char* name) { return OldLookUp(handle, name); }

// Of glibc 2.32: whether the process has one thread. With TensorFlow it never has, and false means
// that shared_ptr counts by atomic instructions.
extern char single_threaded FASTOPS_INSTEAD_OF("__libc_single_threaded");
char single_threaded = 0;

// Of GCC 11's libstdc++: what `new` throws for a length that no array has.
[[noreturn]] void ThrowBadLength() FASTOPS_INSTEAD_OF("_ZSt28__throw_bad_array_new_lengthv");
void ThrowBadLength() { throw std::bad_array_new_length(); }
