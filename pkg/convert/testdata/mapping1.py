"""Mapping 1 as docs/mapping.md describes it, sharing nothing with the Go code.

Reads a carton (a zip), prints the digest of the image manifest that it makes with
the default options and, after "image", that of the image form beside the artifact
of --image. Left out: names that need a PAX header, and more than 500 layers (120
with "image").
"""
import hashlib
import json
import posixpath
import re
import stat
import struct
import sys
import tarfile
import tomllib
import zipfile

FORMATS = [
    ("safetensors", ".safetensors"), ("gguf", ".gguf .ggml"), ("llamafile", ".llamafile"),
    ("onnx", ".onnx .onnx_data .onnx.data"), ("pt2", ".pt2"), ("executorch", ".pte"),
    ("pytorch", ".pt .pth .ptl .bin .ckpt .ot .distcp .mar"), ("nemo", ".nemo"), ("wasm", ".wasm"),
    ("keras", ".h5 .hdf5 .keras"), ("tensorflow", ".pb .data-00000-of-00001"), ("flax", ".msgpack"),
    ("tflite", ".tflite .litertlm .task"), ("coreml", ".mlmodel"), ("paddle", ".pdparams .pdiparams .pdmodel"),
    ("mxnet", ".params"), ("caffe", ".caffemodel"), ("darknet", ".weights"), ("tensorrt", ".engine .plan .trt"),
    ("pickle", ".pkl .pickle .joblib"), ("xgboost", ".ubj"), ("catboost", ".cbm"), ("fasttext", ".ftz"),
]
NAMES = [
    ("weight.config", "training_args.bin", "", "", ""),
    ("weight", "model", "", "", " ".join(s for _, s in FORMATS)),
    ("doc", ".gitattributes .gitignore .gitkeep .gitmodules .dockerignore authors changelog contributors copying copyright",
     "readme license licence notice", "",
     ".md .rst .pdf .htm .html .bib .cff .png .jpg .jpeg .gif .svg .webp .bmp .tif .tiff .mp3 .mp4 .wav .flac .ogg .webm .mov"),
    ("code", "dockerfile makefile", "", ".so.", ".py .pyi .ipynb .sh .c .cc .cpp .h .hpp .cu .cuh .rs .go .js .ts .java .lua .r "
     ".jl .whl .jar .so .a .dll .dylib .exe .pyc .pyd .pyx .pxd .typed"),
    ("dataset", "", "", "", ".parquet .arrow .tfrecord .jsonl"),
    ("weight.config", "", "", "",
     ".json .yaml .yml .toml .txt .cfg .ini .vocab .model .lock .tiktoken .jinja .proto .pbtxt .xml .csv .tsv"),
]
INFO = [
    ("spec_version", "run.carton.spec-version", ()),
    ("runner.runner_name", "run.carton.runner.name", ()),
    ("runner.required_framework_version", "run.carton.runner.framework-version", ()),
    ("runner.runner_compat_version", "run.carton.runner.compat-version", ()),
    ("required_platforms", "run.carton.platforms", ()),
    ("model_name", "org.opencontainers.image.title", ("name", "title")),
    ("short_description", "org.opencontainers.image.description", ("description",)),
    ("license", "org.opencontainers.image.licenses", ("licenses",)),
    ("repository", "org.opencontainers.image.source", ("sourceURL",)),
    ("homepage", "org.opencontainers.image.url", ("docURL",)),
]
PRECISIONS = {"F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16", "I64": "int64", "U8": "uint8"}
CATEGORIES = ["weight.config", "weight", "code", "doc", "dataset"]
BASE = "application/vnd.cnai.model."


def lower(name):
    return "".join(chr(ord(c) + 32) if "A" <= c <= "Z" else c for c in name)


def by_name(path, size):
    base = lower(posixpath.basename(path))
    for category, names, prefixes, infixes, suffixes in NAMES:
        if (base in names.split() or base.startswith(tuple(prefixes.split())) or base.endswith(tuple(suffixes.split()))
                or any(i in base for i in infixes.split())):
            return category
    return "weight" if size >= 16 << 20 else "weight.config"


def category(path, size, roles):
    if path in roles:
        return roles[path]
    if path in ("MANIFEST", "carton.toml"):
        return "weight.config"
    if path.startswith("model/"):
        return by_name(path, size)
    return "dataset" if path.startswith("tensor_data/") else "doc"


def roles_of(files):
    table = tomllib.loads(files["carton.toml"].decode()).get("categories")
    items = table.items() if isinstance(table, dict) else ()
    return {p: c for p, c in items if p.startswith("model/") and c in CATEGORIES}


def sha256(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


def compact(value):
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    return re.sub("[<>&\u2028\u2029]", lambda m: "\\u%04x" % ord(m[0]), text)


def header(name, size=0, target="", folder=False):
    prefix = ""
    if len(name) > 100:
        cut = name[:156].rstrip("/").rfind("/")
        prefix, name = name[:cut], name[cut + 1:]
    info = tarfile.TarInfo(name)
    info.size, info.linkname, info.mtime = size, target, 315532800
    info.type = tarfile.DIRTYPE if folder else tarfile.SYMTYPE if target else tarfile.REGTYPE
    info.mode = 0o755 if folder else 0o777 if target else 0o644
    b = bytearray(info.tobuf(tarfile.USTAR_FORMAT))
    b[0:100] = name.encode().ljust(100, b"\0")
    b[329:345] = b"0000000\0" * 2
    b[345:500] = prefix.encode().ljust(155, b"\0")
    b[148:156] = b" " * 8
    b[148:156] = b"%06o\0 " % sum(b)
    return bytes(b)


def tar(files, links):
    names = set(files) | set(links)
    for path in list(names):
        while "/" in path:
            path = posixpath.dirname(path)
            names.add(path + "/")
    out = b""
    for name in sorted(names, key=str.encode):
        if name in files:
            out += header(name, len(files[name])) + files[name] + bytes(-len(files[name]) % 512)
        else:
            out += header(name, target=links.get(name, ""), folder=name.endswith("/"))
    return out + bytes(1024)


def param_size(n):
    unit, suffix = 1, ""
    for s in "KMBT":
        if n >= unit * 1000 - unit // 20:
            unit, suffix = unit * 1000, s
    tenths = (n * 10 + unit // 2) // unit
    return "%d%s%s" % (tenths // 10, ".%d" % (tenths % 10) if tenths % 10 else "", suffix)


def header_of(data):
    end = 8 + struct.unpack("<Q", data[:8])[0]
    return {name: t for name, t in json.loads(data[8:end]).items() if name != "__metadata__"}


def copies(files):
    """Contents of safetensors files that are other copies of what is counted."""
    sets, out, counts = {}, set(), set()
    indexes = [p for p in files if lower(p).endswith(".safetensors.index.json") and p.startswith("model/")]
    for path in sorted(indexes, key=lambda p: (len(posixpath.basename(p).encode()), p.encode())):
        folder = posixpath.dirname(path)
        listed = {folder + "/" + shard for shard in json.loads(files[path])["weight_map"].values()}
        sets.setdefault(folder, listed)
    weights = [p for p in files if lower(p).endswith(".safetensors") and p.startswith("model/")]
    layout = {p: {n: t["shape"] for n, t in header_of(files[p]).items()} for p in weights}
    for path in weights:
        folder, (stem, suffix) = posixpath.dirname(path), (path[:-12], path[-12:])
        parts = posixpath.basename(stem).split(".")
        bases = [folder + "/" + ".".join(parts[:n]) + suffix for n in range(1, len(parts)) if ".".join(parts[:n])]
        variant = layout[path] and any(layout.get(b) == layout[path] for b in bases)
        copy = path not in sets[folder] if folder in sets else variant
        (out if copy else counts).add(files[path])
    return out - counts


def details(files):
    formats, types, elements, seen, copied = {}, {}, 0, set(), copies(files)
    for path in sorted(files, key=str.encode):
        fits = [f for f, s in FORMATS if lower(path).endswith(tuple(s.split())) and path.startswith("model/")]
        if not fits or files[path] in seen:
            continue
        data = files[path]
        seen.add(data)
        formats[fits[0]] = formats.get(fits[0], 0) + len(data)
        if fits[0] == "safetensors" and data not in copied:
            for t in header_of(data).values():
                p, n = PRECISIONS[t["dtype"]], 1
                types[p] = types.get(p, 0) + t["data_offsets"][1] - t["data_offsets"][0]
                for d in t["shape"]:
                    n *= d
                elements += n
    order = lambda d: sorted(d, key=lambda k: (-d[k], k))
    out = {}
    if formats:
        out["format"] = order(formats)[0]
    if types:
        out["paramSize"], out["precision"] = param_size(elements), ",".join(order(types))
    return out


class Artifact:
    def __init__(self, roles):
        self.roles, self.layers, self.diff_ids = roles, [], []

    def add(self, media, name, data, more):
        keys = ("org.cnai.model.filepath", "org.cncf.model.filepath", "org.opencontainers.image.title")
        annotations = dict(sorted({**dict.fromkeys(keys, name), **more}.items()))
        self.layers.append({"mediaType": BASE + media, "digest": sha256(data), "size": len(data), "annotations": annotations})
        self.diff_ids.append(sha256(data))

    def tar(self, category, number, paths, files, lines, links):
        data = tar({p: files[p] for p in paths}, links)
        more = {"run.carton.members": listed(paths, files, lines)} if paths else {}
        self.add(category + ".v1.tar", ".bundles/%s-%d.tar" % (category, number), data, more)

    def raw(self, path, data, target=""):
        meta = {"name": posixpath.basename(path), "mode": 420, "uid": 0, "gid": 0, "size": len(data),
                "mtime": "1980-01-01T00:00:00Z", "typeflag": 48}
        more = {"org.cnai.model.file.metadata+json": compact(meta)}
        if target:
            more["run.carton.symlink"] = target
        self.add(category(path, len(data), self.roles) + ".v1.raw", path, data, more)


def members(name):
    files, links, lines = {}, {}, {}
    with zipfile.ZipFile(name) as z:
        manifest = z.read("MANIFEST")
        for number, line in enumerate(manifest.decode().splitlines(), 1):
            path = line.rsplit("=", 1)[0]
            lines[path] = number
            data = z.read(path)
            if stat.S_ISLNK(z.getinfo(path).external_attr >> 16):
                links[path] = data.decode()
            else:
                files[path] = data
    return manifest, files, links, lines


def final(path, links):
    while path in links:
        path = posixpath.normpath(posixpath.join(posixpath.dirname(path), links[path]))
    return path


def line_of(files, roles):
    others = [len(d) for p, d in files.items() if d and p != "carton.toml" and category(p, len(d), roles) != "weight"]
    for line in (0, 4 << 10, 64 << 10, 1 << 20, 16 << 20):
        if sum(n >= line for n in others) <= 64:
            return line
    return 1 << 63


def listed(paths, files, lines):
    items, last = [], None
    for path in paths:
        size = len(files[path])
        items.append(str(size) if lines[path] - 1 == last else "%d:%d" % (lines[path], size))
        last = lines[path]
    return ",".join(items)


def artifact(name, image):
    manifest, files, links, lines = members(name)
    roles = roles_of(files)
    line = line_of(files, roles)
    kinds = {p: category(p, len(files[final(p, links)]), roles) for p in files.keys() | links.keys()}
    alone = {p for p, d in files.items() if d and (p == "carton.toml" or kinds[p] == "weight" or len(d) >= line)}
    a = Artifact(roles)
    if image:
        a.tar(".bundles/carton", 1, ["MANIFEST", "carton.toml"], {"MANIFEST": manifest, **files}, {"MANIFEST": 0, **lines}, symlink(kinds))
    else:
        a.raw("MANIFEST", manifest)
        a.raw("carton.toml", files["carton.toml"])
    for c in CATEGORIES:
        own = sorted((p for p in kinds if kinds[p] == c), key=str.encode)
        tars, size = [], 0
        for path in (p for p in own if p in files and p not in alone):
            if not tars or size + len(files[path]) > 64 << 20:
                tars.append([])
                size = 0
            tars[-1].append(path)
            size += len(files[path])
        if image:
            tars += [[p] for p in own if p in alone - {"carton.toml"}]
        for number, paths in enumerate(tars, 1):
            a.tar(c, number, paths, files, lines, {})
        own = {p: links[p] for p in own if p in links and (image or final(p, links) not in alone)}
        if own:
            a.tar(c, len(tars) + 1, [], files, lines, own)
    for path in sorted((p for p in kinds if not image and final(p, links) in alone - {"carton.toml"}), key=str.encode):
        a.raw(path, files[final(path, links)], links.get(path, ""))
    return a, manifest, files


def symlink(paths):
    taken = any(p == "models" or p.startswith("models/") for p in paths)
    return {"models": "model"} if not taken and any(p.startswith("model/") for p in paths) else {}


def image_of(a, annotations):
    layers = []
    for l in a.layers:
        listed = {k: v for k, v in l["annotations"].items() if k == "run.carton.members"}
        layer = {"mediaType": "application/vnd.oci.image.layer.v1.tar", "digest": l["digest"], "size": l["size"]}
        layers.append({**layer, "annotations": listed} if listed else layer)
    config = compact({"architecture": "amd64", "os": "linux", "rootfs": {"type": "layers", "diff_ids": a.diff_ids}}).encode()
    media = "application/vnd.oci.image.config.v1+json"
    return {
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": {"mediaType": media, "digest": sha256(config), "size": len(config)},
        "layers": layers,
        "annotations": annotations,
    }


def main(name, image=""):
    a, manifest, files = artifact(name, image)
    info = tomllib.loads(files["carton.toml"].decode())
    annotations = {"run.carton.mapping": "1", "run.carton.model.hash": sha256(manifest)[7:]}
    described = {}
    for key, annotation, fields in INFO:
        table, _, key = key.rpartition(".")
        value = (info[table] if table else info).get(key)
        if value:
            annotations[annotation] = ",".join(value) if isinstance(value, list) else str(value)
            described.update({f: [value] if f == "licenses" else value for f in fields})
    for key in ("base.name", "revision", "version", "authors", "vendor", "documentation"):
        key = "org.opencontainers.image." + key
        if value := info.get("annotations", {}).get(key):
            annotations[key] = value
    order = ("name", "title", "description", "docURL", "sourceURL", "licenses")
    config = compact({
        "descriptor": {f: described[f] for f in order if f in described},
        "config": details(files),
        "modelfs": {"type": "layers", "diffIds": a.diff_ids},
    }).encode()
    made = image_of(a, dict(sorted(annotations.items()))) if image else {
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "artifactType": BASE + "manifest.v1+json",
        "config": {"mediaType": BASE + "config.v1+json", "digest": sha256(config), "size": len(config)},
        "layers": a.layers,
        "annotations": dict(sorted(annotations.items())),
    }
    print(sha256(compact(made).encode()))


main(*sys.argv[1:])
