(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const references = [...document.querySelectorAll(".cited li")];
  data.views.forEach((details, place) => {
    const options = { caption: data.caption, picture: data.picture, references };
    document.querySelector(`[data-view="${place}"]`).append(caplensDetails.draw(details, options));
  });
})();
