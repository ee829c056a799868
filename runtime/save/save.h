/* What a job has saved (keel_keep_save), in a folder that all who write or read it see:
 *
 *   VERSION.JOB.MARK.manifest  text: what the save consists of, each file with its length and digest; its own digest
 *   VERSION.JOB.MARK.rankN     what rank N holds (struct save_head and what follows)
 *
 * MARK is 16 digits that follow from the job's secret, the version and what the file is: all ranks come to the same,
 * and nobody else can tell them before the file is there. So nobody who may write to the folder takes a name before the
 * file has it. (Saves of earlier versions of Keel have no mark, and are read all the same.)
 *
 * Files have mode 0600, and belong to who writes them. Each is written under a name of its writer's own, brought to the
 * disk, and then named; the manifest comes last, so that it never names what is not there. No save has the names of
 * another one: whoever stood still while a later one was made, and goes on, overwrites nothing of that. What a folder
 * has is the greatest version whose files are all there; who has written its manifest takes the earlier ones away.
 * Digests are BLAKE2b of 32 bytes. Why something cannot be done is written into why, one line. */
#ifndef KEEL_SAVE_SAVE_H
#define KEEL_SAVE_SAVE_H

#include <sodium.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SAVE_SUM = 32, SAVE_NAME = 80, SAVE_PATH = 1200, SAVE_WHY = 1600 };
#define SAVE_MAGIC "KEELSAV1"
enum { SAVE_SECRET = 32, SAVE_PART = SAVE_NAME + 24 };
/* Where `keelrun --restore` says what to begin with. */
#define SAVE_ENV "KEEL_RESTORE"

/* A rank's file: this, then a save_part for each segment, then the bytes of the rank's parts of them, then the table
 * of what it has kept (keep/layout.h) and kept_bytes bytes. In the order of bytes of the machine that wrote it, which
 * the magic number shows. */
struct save_head {
    char magic[8];
    uint64_t order; /* SAVE_ORDER */
    uint64_t ranks, rank, version, segments, kept_bytes;
};
#define SAVE_ORDER 0x0102030405060708u

struct save_part {
    uint64_t bytes, redundancy;
};

struct save_entry {
    char name[SAVE_NAME];
    uint64_t bytes;
    uint8_t sum[SAVE_SUM];
};

struct save_manifest {
    uint64_t ranks, version;
    struct save_entry *rank; /* [ranks] */
};

/* ---- name.c ---- */
struct save_job {
    uint64_t number;
    const uint8_t *secret; /* SAVE_SECRET bytes */
};
/* In the place of a rank. */
#define SAVE_MANIFEST UINT64_MAX
/* The name of a rank's file, or of the manifest. */
void save_name(char name[SAVE_NAME], const struct save_job *job, uint64_t version, uint64_t rank);
/* What a file of a save is, by its name. */
struct save_named {
    uint64_t version, job;
    int mark, kind;      /* where the mark (with its dot), and what is behind it, begin; the same: it has none */
    bool manifest, part; /* part: somebody is writing it, or has died while it did */
};
/* False: it is none. */
bool save_name_read(const char *name, struct save_named *f);
/* What the file is called while it is written: by no other process, and without the mark. */
void save_name_of_part(char part[SAVE_PART], const char *name);

/* ---- manifest.c ---- */
/* Of that many ranks, zeroed. False: out of memory. */
bool save_manifest_room(struct save_manifest *m, uint64_t ranks);
void save_manifest_free(struct save_manifest *m);
bool save_manifest_write(const char *folder, const struct save_job *job, const struct save_manifest *m, char *why);
/* The save that a folder has: the path of its manifest, which belongs to this user, to root or to the owner of the
 * folder. where: the folder, or such a path itself. */
bool save_find(const char *where, char path[SAVE_PATH], char *why);
/* False also: it is not there, or is not what was written. Then there is nothing to free. */
bool save_manifest_read(const char *path, struct save_manifest *m, char *why);
/* The text that a manifest is, and back. NULL, false: out of memory; it is none. */
char *save_manifest_text(const struct save_manifest *m, size_t *len);
bool save_manifest_parse(const char *text, size_t len, struct save_manifest *m, char *why);
/* All files are there, and each byte is what was written, for a job of so many ranks. Reads all of them. */
bool save_verify(const char *path, uint64_t ranks, char *why);
/* The folder in which a manifest lies. */
void save_folder(char folder[SAVE_PATH], const char *path);
/* Takes away what earlier saves have left in the folder; later ones of the same job stay. */
void save_sweep(const char *folder, const struct save_manifest *m);
/* After a save that failed: takes away the rank's file of that version of the job, or all of its files up to that
 * version and what was being written; but none of a save whose manifest is there. */
void save_forget(const char *folder, const struct save_job *job, uint64_t version, uint64_t rank);
void save_forget_all(const char *folder, const struct save_job *job, uint64_t version);

/* ---- file.c ---- */
struct save_file {
    int fd;
    uint64_t bytes; /* written or read so far */
    crypto_generichash_state sum;
    char path[SAVE_PATH], part[SAVE_PATH + SAVE_PART]; /* as what it is written */
};
/* Makes the folder, if it is not there. False also: everybody may write to the folder and take files from it, or it is
 * on a file system that lets others read what is written. */
bool save_create(struct save_file *f, const char *folder, const char *name, char *why);
bool save_append(struct save_file *f, const void *data, size_t len, char *why);
/* It has its name, and is on the disk. */
bool save_finish(struct save_file *f, uint8_t sum[SAVE_SUM], char *why);
/* False also: it belongs neither to this user nor to root nor to the owner of the folder; or the folder is as above. */
bool save_open(struct save_file *f, const char *folder, const char *name, char *why);
bool save_next(struct save_file *f, void *data, size_t len, char *why);
/* It ended where it should, and is what the entry says. Closes it. */
bool save_check(struct save_file *f, const struct save_entry *e, char *why);
/* Gives it up; what was being written is taken away. */
void save_drop(struct save_file *f);
#endif
