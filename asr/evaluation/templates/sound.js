// One recording at a time; what is embedded is read when first played.
const SOUND = (() => {
  const element = document.getElementById("sounds");
  const player = new Audio();
  let sources = null, playing = null;
  const stop = () => {
    player.pause();
    if (playing) { playing.classList.remove("playing"); playing.textContent = "▶"; }
    playing = null;
  };
  player.onended = stop;
  player.onerror = () => {
    const failed = playing;
    stop();
    if (failed) { failed.textContent = "✕"; failed.title = "The recording could not be played"; }
  };
  return {
    button(utterance) {
      if (!utterance.sound) return null;
      const button = make("button", { type: "button", className: "play", label: `Play ${visible(utterance.id)}` }, "▶");
      button.onclick = () => {
        const again = playing === button;
        stop();
        if (again) return;
        playing = button;
        button.classList.add("playing");
        button.textContent = "■";
        sources ??= JSON.parse(element.textContent);
        player.src = sources[utterance.id];
        player.play().catch(() => playing === button && stop()); // why is onerror's to say
      };
      return button;
    },
  };
})();
