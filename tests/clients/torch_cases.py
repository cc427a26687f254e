# SPDX-License-Identifier: Apache-2.0
"""One use of PyTorch, by name: torch_cases.py CASE.  The last line is what PyTorch counted, as JSON."""
import gc
import hashlib
import json
import os
import sys
import tempfile

import torch
from torch import nn
from torch.nn import functional as F

GPU = "cuda"


class Gpt(nn.Module):
    def __init__(self, width=256, layers=4, heads=4, words=1000):
        super().__init__()
        self.words, self.head = nn.Embedding(words, width), nn.Linear(width, words)
        layer = nn.TransformerEncoderLayer(width, heads, 4 * width, dropout=0.1, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)

    def forward(self, text):
        mask = nn.Transformer.generate_square_subsequent_mask(text.size(1), device=text.device)
        return self.head(self.layers(self.words(text), mask=mask, is_causal=True))


class Residual(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.first = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.second = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.norm_1, self.norm_2 = nn.BatchNorm2d(outputs), nn.BatchNorm2d(outputs)
        self.short = nn.Conv2d(inputs, outputs, 1, stride) if stride > 1 else nn.Identity()

    def forward(self, x):
        y = F.relu(self.norm_1(self.first(x)))
        return F.relu(self.norm_2(self.second(y)) + self.short(x))


def resnet():
    widths = (64, 64, 128, 256, 512)
    blocks = [b for i, o in zip(widths, widths[1:]) for b in (Residual(i, o, 1 + (o > 64)), Residual(o, o, 1))]
    return nn.Sequential(nn.Conv2d(3, 64, 7, 2, 3), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1), *blocks,
                         nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 100))


def text(batch=8, length=128, words=1000):
    return torch.randint(words, (batch, length), device=GPU)


def train(model, batch, loss_of, steps=3, amp=None):
    optimizer = torch.optim.AdamW(model.parameters())
    is_scaled = amp == torch.float16
    scaler = (torch.amp.GradScaler(GPU, enabled=is_scaled) if hasattr(torch.amp, "GradScaler")
              else torch.cuda.amp.GradScaler(enabled=is_scaled))  # before 2.3
    for _ in range(steps):
        with torch.autocast(GPU, amp or torch.float16, enabled=amp is not None):
            loss = loss_of(model, batch())
        scaler.scale(loss).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
        print("loss", loss.item().hex())
    torch.cuda.synchronize()


def next_word(model, words):
    return F.cross_entropy(model(words).flatten(0, 1), words.flatten())


def digest(tensor):
    return hashlib.sha256(tensor.cpu().contiguous().numpy().tobytes()).hexdigest()


def case_eager():
    train(Gpt().to(GPU), text, next_word)


def case_amp():
    train(Gpt().to(GPU), text, next_word, amp=torch.bfloat16)


def case_amp_scaled():
    train(Gpt().to(GPU), text, next_word, amp=torch.float16)


def case_resnet():
    train(resnet().to(GPU), lambda: torch.randn(4, 3, 224, 224, device=GPU),
          lambda model, x: model(x).square().mean(), amp=torch.bfloat16)


def case_lstm():
    model = nn.LSTM(64, 128, 2, bidirectional=True).to(GPU)
    train(model, lambda: torch.randn(20, 8, 64, device=GPU), lambda m, x: m(x)[0].square().mean())


def case_caught():
    held = [torch.empty(1 << 28, dtype=torch.uint8, device=GPU) for _ in range(4)]
    try:
        torch.empty(1 << 36, dtype=torch.uint8, device=GPU)
    except torch.cuda.OutOfMemoryError as error:
        print(str(error).split(". GPU")[0])
    del held
    torch.cuda.empty_cache()
    case_eager()


def counts(device=None):
    stats = torch.cuda.memory_stats(device)
    return {key: stats[key] for key in sorted(stats) if key.endswith((".current", ".peak", ".allocated", ".freed"))}


def case_exhausted():
    held = []
    try:
        while True:
            held.append(torch.empty(1 << 28, dtype=torch.uint8, device=GPU))
    except torch.cuda.OutOfMemoryError:
        print(json.dumps(counts()))
        raise


def case_limited():
    """PyTorch's own limit refuses: the driver never hears of it."""
    torch.cuda.set_per_process_memory_fraction(0.25)
    case_exhausted()


def case_devices():
    """A model of which each half is on a GPU of its own."""
    model, words = Gpt().to(GPU), text()
    model.head.to("cuda:1")
    hidden = model.layers(model.words(words)).to("cuda:1")
    F.cross_entropy(model.head(hidden).flatten(0, 1), words.to("cuda:1").flatten()).backward()
    torch.cuda.synchronize()


def case_host():
    """A model that learns on the host, beside one on the GPU: there results are results."""
    ours, theirs = nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.Dropout(0.1), nn.Linear(64, 32)), Gpt().to(GPU)
    optimizer = torch.optim.AdamW(ours.parameters())
    for _ in range(10):
        next_word(theirs, text()).backward()
        loss = F.mse_loss(ours(torch.randn(16, 32)), torch.randn(16, 32))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        print("loss on the host", loss.item().hex())
    print("weights on the host", digest(torch.cat([p.detach().flatten() for p in ours.parameters()])))


class Numbers(torch.utils.data.Dataset):
    def __len__(self):
        return 16

    def __getitem__(self, i):
        return torch.full((64,), i % 1000)


def case_workers():
    loader = torch.utils.data.DataLoader(Numbers(), batch_size=4, num_workers=2, pin_memory=True)
    model = Gpt().to(GPU)
    for words in loader:
        next_word(model, words.to(GPU, non_blocking=True)).backward()
    print(sum(int(words.sum()) for words in loader))


def case_checkpoint():
    from torch.utils.checkpoint import checkpoint

    layers = nn.ModuleList(nn.Linear(512, 512) for _ in range(6)).to(GPU)
    x = torch.randn(64, 512, device=GPU, requires_grad=True)
    for layer in layers:
        x = checkpoint(lambda y, layer=layer: F.gelu(layer(y)), x, use_reentrant=False)
    x.sum().backward()
    model = Gpt().to(GPU)
    with tempfile.NamedTemporaryFile() as file:
        torch.save(model.state_dict(), file.name)
        kept = torch.load(file.name, map_location=GPU)
    print(all(torch.equal(a.cpu(), b.cpu()) for a, b in zip(model.state_dict().values(), kept.values())))


def case_graphs():
    model, words = Gpt().to(GPU).eval(), text()
    side = torch.cuda.Stream()
    with torch.cuda.stream(side), torch.no_grad():
        model(words)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph), torch.no_grad():
        out = model(words)
    for _ in range(3):
        graph.replay()
    torch.cuda.synchronize()
    print(tuple(out.shape))


def take_first_kernel():
    """Inductor runs each of several kernels for one purpose and takes the fastest: here all are as fast, and it takes the first."""
    try:
        from torch._inductor.runtime.triton_heuristics import CachingAutotuner
    except ImportError:  # before 2.5
        from torch._inductor.triton_heuristics import CachingAutotuner
    CachingAutotuner.bench = lambda *_args, **_options: 0.0


def case_compile():
    model = nn.Sequential(nn.Linear(256, 256), nn.GELU(), nn.LayerNorm(256)).to(GPU)
    if not os.environ.get("WITHOUT_TRITON"):
        take_first_kernel()
    model = torch.compile(model, backend="aot_eager" if os.environ.get("WITHOUT_TRITON") else "inductor")
    x = torch.randn(32, 256, device=GPU, requires_grad=True)
    model(x).sum().backward()
    torch.cuda.synchronize()


def case_streams():
    side = torch.cuda.Stream()
    for _ in range(20):
        x = torch.empty(1 << 22, dtype=torch.uint8, device=GPU)
        with torch.cuda.stream(side):
            y = x + 1
        x.record_stream(side)
        del x
        torch.cuda.current_stream().wait_stream(side)
        del y
    torch.cuda.synchronize()


def case_values():
    """What copies alone decide is as on a GPU, kernels or not."""
    x = torch.arange(1 << 20, dtype=torch.float32)
    print(torch.equal(x.to(GPU).cpu(), x), torch.equal(x.to(GPU).clone().cpu(), x))
    print(float(torch.zeros(1 << 20, device=GPU).cpu().sum()))


def case_libraries():
    """A Fourier transform, a decomposition, random numbers of the libraries over CUDA."""
    torch.fft.fft(torch.randn(64, 256, device=GPU))
    torch.fft.irfft2(torch.fft.rfft2(torch.randn(8, 64, 64, device=GPU)))
    torch.cuda.synchronize()


def case_gpu():
    """A step of several models, and what CUB's kernels do, which are chosen by the version of their code; or what PyTorch
    says on a GPU for which it has no code."""
    major, minor = torch.cuda.get_device_capability()
    built_for = [divmod(int(arch.removeprefix("sm_")), 10) for arch in torch.cuda.get_arch_list() if arch[3:].isdigit()]
    if not any(its_major == major and its_minor <= minor for its_major, its_minor in built_for):
        try:
            torch.ones(1, device=GPU)
        except RuntimeError as error:
            print(str(error).splitlines()[0])
        return
    x = torch.ones(512, device=GPU)
    for select in (lambda: x.cumsum(0), x.sort, x.unique, x.nonzero, lambda: x[x > 0], lambda: x.masked_select(x > 0),
                   lambda: x.topk(5), lambda: torch.randperm(100000, device=GPU), lambda: torch.bincount(x.long()), x.median):
        select()
    for case in (case_eager, case_amp, case_lstm, case_checkpoint, case_graphs, case_libraries, case_streams):
        case()


def case_distributed():
    import torch.distributed as dist

    with tempfile.TemporaryDirectory() as folder:
        dist.init_process_group("nccl", init_method=f"file://{folder}/store", rank=0, world_size=1)
        x = torch.arange(10, device=GPU)
        dist.all_reduce(x)
        print(x.tolist())
        model = nn.parallel.DistributedDataParallel(Gpt().to(GPU))
        next_word(model, text()).backward()
        dist.destroy_process_group()


def case_lacking():
    """What no stand-in has says so, by the library's own words."""
    try:
        torch.linalg.eigh(torch.eye(200, device=GPU))
    except RuntimeError as error:
        print(type(error).__name__, "cusolver" in str(error).lower())


def case_profiler():
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as seen:
        torch.ones(10, device=GPU) + 1
    print(len(seen.events()) > 0)


class Sentences(torch.utils.data.Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, i):
        words = torch.full((64,), i % 100)
        return {"input_ids": words, "labels": words}


def small_gpt2():
    from transformers import GPT2Config, GPT2LMHeadModel

    return GPT2LMHeadModel(GPT2Config(n_layer=2, n_head=2, n_embd=64, vocab_size=100, n_positions=64, bos_token_id=0,
                                      eos_token_id=0))


def case_trainer():
    """Hugging Face's Trainer, on a small model of random weights.  It does not ask whether the loss is a number: no kernel
    says so, and what is in reused memory is not what is in new memory."""
    from transformers import Trainer, TrainingArguments

    with tempfile.TemporaryDirectory() as folder:
        settings = TrainingArguments(output_dir=folder, max_steps=4, per_device_train_batch_size=8, report_to=[],
                                     save_strategy="no", disable_tqdm=True, logging_nan_inf_filter=False)
        trained = Trainer(model=small_gpt2(), args=settings, train_dataset=Sentences()).train()
    print(trained.global_step, float(trained.training_loss).hex())


def case_tokens():
    """Keys and values of what was said before, a token longer at each step; no kernel says when it is enough."""
    model, words, kept = small_gpt2().to(GPU).eval(), torch.tensor([[1, 2]], device=GPU), None
    with torch.no_grad():
        for _ in range(16):
            out = model(words, past_key_values=kept, use_cache=True)
            kept, words = out.past_key_values, out.logits[:, -1:].argmax(-1)
    print(kept.get_seq_length())


def case_lightning():
    """Lightning's trainer, in half precision, with a validation between."""
    import lightning

    class Net(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.layers = nn.Sequential(nn.Linear(256, 256), nn.GELU(), nn.Linear(256, 256))

        def training_step(self, batch):
            return self.layers(batch).square().mean()

        def validation_step(self, batch):
            self.log("loss", self.training_step(batch))

        def configure_optimizers(self):
            return torch.optim.AdamW(self.parameters())

    trainer = lightning.Trainer(max_epochs=2, accelerator="gpu", devices=1, precision="16-mixed", logger=False,
                                enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False)
    data = [torch.utils.data.DataLoader(torch.zeros(256, 256), batch_size=32, pin_memory=True) for _ in range(2)]
    trainer.fit(Net(), *data)
    print(trainer.global_step, float(trainer.callback_metrics["loss"]).hex())


def pluggable(path):
    allocator = torch.cuda.memory.CUDAPluggableAllocator(path, "take", "give")
    torch.cuda.memory.change_current_allocator(allocator)


def main(case):
    if os.environ.get("PLUGGABLE"):
        pluggable(os.environ["PLUGGABLE"])
    torch.backends.cudnn.enabled = not os.environ.get("WITHOUT_CUDNN")
    torch.manual_seed(0)
    globals()[f"case_{case}"]()
    gc.collect()
    print("generators", digest(torch.get_rng_state()), *map(digest, torch.cuda.get_rng_state_all()))
    counted = {}
    if not os.environ.get("PLUGGABLE"):
        counted = {**counts(0), "others": [counts(i) for i in range(1, torch.cuda.device_count())]}
    print(json.dumps(counted))


if __name__ == "__main__":
    main(sys.argv[1])
